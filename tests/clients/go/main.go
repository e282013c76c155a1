// Program clients does with unmodified Go client libraries what controllers do all day, against any API server, and
// prints a JSON line for each thing it saw. One scenario a run: clients -kubeconfig FILE -namespace NS SCENARIO.
//
// It judges nothing but errors: what the lines must say stands in ../test_go_clients.py.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	controllerruntime "sigs.k8s.io/controller-runtime"
)

// limit ends a scenario that waits for what never comes.
const limit = 60 * time.Second

// place is the server and the namespace that a scenario works in.
type place struct {
	config    *rest.Config
	namespace string
}

// protobuf returns the configuration of a client that speaks protobuf wherever the server does.
func (p place) protobuf() *rest.Config {
	config := rest.CopyConfig(p.config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

var scenarios = map[string]func(context.Context, place) error{
	"apply":      serverSideApply,
	"collisions": collisions,
	"discovery":  discoverAll,
	"dynamic":    dynamicClient,
	"election":   leaderElection,
	"errors":     typedErrors,
	"events":     recordEvents,
	"identity":   serviceAccountToken,
	"informers":  sharedInformers,
	"lists":      pagedLists,
	"manager":    runManager,
	"metadata":   metadataInformer,
	"patches":    allPatches,
	"resume":     resumeWatch,
}

func main() {
	// A set of our own: controller-runtime puts a flag named kubeconfig into the shared one.
	flags := flag.NewFlagSet("clients", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", "", "the kubeconfig to use")
	namespace := flags.String("namespace", "default", "an existing namespace to work in")
	verbose := flags.Bool("verbose", false, "let the libraries log to stderr")
	_ = flags.Parse(os.Args[1:]) // it exits by itself
	if !*verbose {
		klog.SetLogger(logr.Discard())
		klog.SetOutput(io.Discard)
	}
	controllerruntime.SetLogger(klog.Background())
	if err := run(*kubeconfig, *namespace, flags.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "clients:", err)
		os.Exit(1)
	}
}

func run(kubeconfig, namespace, name string) error {
	scenario, known := scenarios[name]
	if !known {
		var names []string
		for name := range scenarios {
			names = append(names, name)
		}
		slices.Sort(names)
		return fmt.Errorf("no scenario %q: there are %s", name, strings.Join(names, ", "))
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	// The libraries' default of 5 requests a second would measure them, not the server.
	config.QPS, config.Burst = 500, 1000
	config.UserAgent = "clients/" + name
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return scenario(ctx, place{config, namespace})
}

// facts are what is known about one thing that was seen.
type facts map[string]any

// saw prints one line.
func saw(what string, known facts) {
	line := facts{"saw": what}
	for key, value := range known {
		line[key] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // facts are ours; they are always printable
	}
	fmt.Println(string(text))
}
