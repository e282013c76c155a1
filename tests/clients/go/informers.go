package main

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/pager"
)

// wire counts what a client sent and how it was answered.
type wire struct {
	http.RoundTripper
	lock  sync.Mutex
	facts map[string]int
}

// watched returns a configuration whose requests are counted.
func watched(config *rest.Config) (*rest.Config, *wire) {
	counted := &wire{facts: map[string]int{}}
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		counted.RoundTripper = next
		return counted
	})
	return config, counted
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := w.RoundTripper.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	w.lock.Lock()
	defer w.lock.Unlock()
	query := request.URL.Query()
	switch {
	case query.Get("sendInitialEvents") == "true":
		w.facts["watchLists"]++
	case query.Has("watch"):
		w.facts["watches"]++
	case request.Method == http.MethodGet:
		w.facts["reads"]++
	case strings.Contains(request.Header.Get("Content-Type"), "protobuf"):
		w.facts["protobufBodies"]++
	}
	if response.StatusCode >= http.StatusInternalServerError {
		w.facts["serverErrors"]++
	}
	return response, nil
}

func (w *wire) counted() map[string]int {
	w.lock.Lock()
	defer w.lock.Unlock()
	copied := map[string]int{}
	for name, count := range w.facts {
		copied[name] = count
	}
	return copied
}

// seenEvents counts an informer's events.
type seenEvents struct {
	lock                    sync.Mutex
	added, updated, deleted int
}

func (s *seenEvents) count(which *int) {
	s.lock.Lock()
	defer s.lock.Unlock()
	*which++
}

// handler counts what this program made; Kubernetes puts a ConfigMap of its own into every namespace.
func (s *seenEvents) handler() cache.ResourceEventHandler {
	ours := func(object any) bool {
		if last, unseen := object.(cache.DeletedFinalStateUnknown); unseen {
			object = last.Obj
		}
		_, made := object.(metav1.Object).GetLabels()["made"]
		return made
	}
	return cache.FilteringResourceEventHandler{FilterFunc: ours, Handler: cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) { s.count(&s.added) },
		UpdateFunc: func(before, after any) {
			// An informer also tells of what it lists anew and finds unchanged.
			if before.(metav1.Object).GetResourceVersion() != after.(metav1.Object).GetResourceVersion() {
				s.count(&s.updated)
			}
		},
		DeleteFunc: func(any) { s.count(&s.deleted) },
	}}
}

func (s *seenEvents) are(added, updated, deleted int) bool {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.added == added && s.updated == updated && s.deleted == deleted
}

func (s *seenEvents) String() string {
	s.lock.Lock()
	defer s.lock.Unlock()
	return fmt.Sprintf("%d added, %d updated, %d deleted", s.added, s.updated, s.deleted)
}

// sharedInformers fills caches of ConfigMaps and Secrets over protobuf, changes things, and compares with a list.
func sharedInformers(ctx context.Context, at place) error {
	config, wire := watched(at.protobuf())
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(at.namespace)
	if err := makeConfigMaps(ctx, client, at.namespace, "early", 10); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(at.namespace))
	defer func() {
		stop() // what Shutdown waits for
		factory.Shutdown()
	}()
	informer := factory.Core().V1().ConfigMaps()
	secrets := factory.Core().V1().Secrets().Informer()
	events := &seenEvents{}
	if _, err := informer.Informer().AddEventHandler(events.handler()); err != nil {
		return err
	}
	factory.Start(running.Done())
	for kind, synced := range factory.WaitForCacheSync(ctx.Done()) {
		saw("synced", facts{"kind": kind.Elem().Name(), "synced": synced})
	}
	if err := makeConfigMaps(ctx, client, at.namespace, "late", 10); err != nil {
		return err
	}
	for index := range 4 {
		name := fmt.Sprintf("late-%d", index)
		patch := []byte(`{"data":{"changed":"yes"}}`)
		if _, err := maps.Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	for index := range 3 {
		if err := maps.Delete(ctx, fmt.Sprintf("early-%d", index), metav1.DeleteOptions{}); err != nil {
			return err
		}
	}
	err = waitUntil(ctx, "20 added, 4 updated, 3 deleted", func(context.Context) (bool, error) {
		return events.are(20, 4, 3), nil
	})
	saw("events", facts{"counted": events.String()})
	if err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "binary"}, Data: map[string][]byte{"k": {0, 255}}}
	if _, err := client.CoreV1().Secrets(at.namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := waitUntil(ctx, "the secret is cached", func(context.Context) (bool, error) {
		found, exists, err := secrets.GetStore().GetByKey(at.namespace + "/binary")
		return exists && slices.Equal(found.(*corev1.Secret).Data["k"], []byte{0, 255}), err
	}); err != nil {
		return err
	}
	cached, err := informer.Lister().ConfigMaps(at.namespace).List(labels.Everything())
	if err != nil {
		return err
	}
	listed, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	saw("cache", facts{"same": sameVersions(cached, listed.Items), "size": len(cached)})
	saw("wire", facts{"counts": wire.counted()})
	return nil
}

func sameVersions(cached []*corev1.ConfigMap, listed []corev1.ConfigMap) bool {
	versions := map[string]string{}
	for _, object := range cached {
		versions[object.Name] = object.ResourceVersion
	}
	for _, object := range listed {
		if versions[object.Name] != object.ResourceVersion {
			return false
		}
	}
	return len(cached) == len(listed)
}

func makeConfigMaps(ctx context.Context, client kubernetes.Interface, namespace, prefix string, count int) error {
	for index := range count {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("%s-%d", prefix, index), Labels: map[string]string{"made": prefix}}
		object := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"index": fmt.Sprint(index)}}
		if _, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, object, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// pagedLists walks a list in pages while it changes, as every informer without watch lists does.
func pagedLists(ctx context.Context, at place) error {
	config, wire := watched(at.config)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	if err := makeConfigMaps(ctx, client, at.namespace, "page", 25); err != nil {
		return err
	}
	made := labels.SelectorFromSet(labels.Set{"made": "page"}).String()
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().ConfigMaps(at.namespace).List(ctx, options)
	})
	pages.PageSize = 10
	before, names := wire.counted()["reads"], map[string]bool{}
	err = pages.EachListItem(ctx, metav1.ListOptions{LabelSelector: made}, func(object runtime.Object) error {
		name := object.(*corev1.ConfigMap).Name
		if names[name] {
			return fmt.Errorf("%s came twice", name)
		}
		names[name] = true
		return client.CoreV1().ConfigMaps(at.namespace).Delete(ctx, name, metav1.DeleteOptions{})
	})
	saw("paged", facts{"items": len(names), "requests": wire.counted()["reads"] - before})
	return err
}

// metadataInformer caches only the metadata of two kinds, as the garbage collector does.
func metadataInformer(ctx context.Context, at place) error {
	client, err := metadata.NewForConfig(at.config)
	if err != nil {
		return err
	}
	typed, err := kubernetes.NewForConfig(at.config)
	if err != nil {
		return err
	}
	if err := makeWidget(ctx, at, "seen"); err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	factory := metadatainformer.NewFilteredSharedInformerFactory(client, 0, at.namespace, nil)
	defer func() {
		stop() // what Shutdown waits for
		factory.Shutdown()
	}()
	maps := factory.ForResource(corev1.SchemeGroupVersion.WithResource("configmaps"))
	widgets := factory.ForResource(widgetResource)
	stores := map[string]cache.Store{"maps": maps.Informer().GetStore(), "widgets": widgets.Informer().GetStore()}
	factory.Start(running.Done())
	factory.WaitForCacheSync(ctx.Done())
	if err := makeConfigMaps(ctx, typed, at.namespace, "meta", 3); err != nil {
		return err
	}
	if err := waitUntil(ctx, "the metadata is cached", func(context.Context) (bool, error) {
		_, exists, err := stores["maps"].GetByKey(at.namespace + "/meta-2")
		return exists, err
	}); err != nil {
		return err
	}
	found, exists, err := stores["widgets"].GetByKey(at.namespace + "/seen")
	if err != nil || !exists {
		return fmt.Errorf("the widget is cached: %t, %w", exists, err)
	}
	widget := found.(*metav1.PartialObjectMetadata)
	saw("metadata", facts{"name": widget.Name, "uid": widget.UID != ""})
	return nil
}

// resumeWatch drops a watch and takes it up at the last revision that it saw.
func resumeWatch(ctx context.Context, at place) error {
	client, err := kubernetes.NewForConfig(at.protobuf())
	if err != nil {
		return err
	}
	maps := client.CoreV1().ConfigMaps(at.namespace)
	listed, err := maps.List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	version := listed.ResourceVersion
	for round := range 3 {
		prefix := fmt.Sprintf("round%d", round)
		if err := makeConfigMaps(ctx, client, at.namespace, prefix, 2); err != nil {
			return err
		}
		names, last, err := readWatch(ctx, client, at.namespace, version, 2)
		saw("resumed", facts{"names": names})
		if err != nil {
			return err
		}
		version = last
	}
	return nil
}

// readWatch returns the names of the first events after a revision, and the revision of the last of them.
func readWatch(ctx context.Context, client kubernetes.Interface, namespace, version string, count int) ([]string, string, error) {
	seconds := int64(30)
	options := metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: &seconds, AllowWatchBookmarks: true}
	stream, err := client.CoreV1().ConfigMaps(namespace).Watch(ctx, options)
	if err != nil {
		return nil, "", err
	}
	defer stream.Stop()
	var names []string
	for event := range stream.ResultChan() {
		object, known := event.Object.(*corev1.ConfigMap)
		if !known {
			return names, version, fmt.Errorf("event %s of %T", event.Type, event.Object)
		}
		version = object.ResourceVersion
		if event.Type == watch.Bookmark || object.Name == "kube-root-ca.crt" {
			continue
		}
		names = append(names, object.Name)
		if len(names) == count {
			return names, version, nil
		}
	}
	return names, version, fmt.Errorf("the watch ended at %s", time.Now().Format(time.TimeOnly))
}
