package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// leaderElection lets two candidates want one Lease: the first gives it up, the second takes over.
func leaderElection(ctx context.Context, at place) error {
	leading := make(chan string, 4)
	first, retire := context.WithCancel(ctx)
	defer retire()
	firstDone, err := campaign(first, at, "first", leading)
	if err != nil {
		return err
	}
	saw("leads", facts{"who": <-leading})
	second, end := context.WithCancel(ctx)
	defer end()
	secondDone, err := campaign(second, at, "second", leading)
	if err != nil {
		return err
	}
	select {
	case who := <-leading:
		return fmt.Errorf("%s leads beside the first", who)
	case <-time.After(5 * time.Second): // longer than a lease that is not renewed would last
	}
	released := time.Now()
	retire()
	<-firstDone
	select {
	case who := <-leading:
		saw("leads", facts{"who": who, "within": time.Since(released) < 3*time.Second})
	case <-ctx.Done():
		return fmt.Errorf("nobody took over: %w", ctx.Err())
	}
	client, err := kubernetes.NewForConfig(at.config)
	if err != nil {
		return err
	}
	lease, err := client.CoordinationV1().Leases(at.namespace).Get(ctx, "election", metav1.GetOptions{})
	if err != nil {
		return err
	}
	saw("lease", facts{"holder": *lease.Spec.HolderIdentity, "renewed": lease.Spec.RenewTime.After(released)})
	end()
	<-secondDone
	return nil
}

// campaign runs one candidate until its context ends; the channel is closed when it has released the lease.
func campaign(ctx context.Context, at place, who string, leading chan<- string) (<-chan struct{}, error) {
	client, err := kubernetes.NewForConfig(at.config)
	if err != nil {
		return nil, err
	}
	lock := &resourcelock.LeaseLock{
		LeaseMeta:  metav1.ObjectMeta{Namespace: at.namespace, Name: "election"},
		Client:     client.CoordinationV1(),
		LockConfig: resourcelock.ResourceLockConfig{Identity: who},
	}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock:            lock,
		ReleaseOnCancel: true,
		LeaseDuration:   4 * time.Second,
		RenewDeadline:   3 * time.Second,
		RetryPeriod:     500 * time.Millisecond,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { leading <- who },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		elector.Run(ctx)
	}()
	return done, nil
}

// discoverAll asks what is served, in the aggregated form and through the caches that mappers use.
func discoverAll(_ context.Context, at place) error {
	config, wire := watched(at.config)
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	version, err := client.ServerVersion()
	if err != nil {
		return err
	}
	before := wire.counted()["reads"]
	cached := memory.NewMemCacheClient(client)
	groups, resources, err := cached.ServerGroupsAndResources()
	if err != nil {
		return err
	}
	saw("discovered", facts{
		"version": version.GitVersion, "groups": len(groups), "kinds": verbsByKind(resources),
		"requests": wire.counted()["reads"] - before,
	})
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(cached)
	mapping, err := mapper.RESTMapping(widgetVersion.WithKind("Widget").GroupKind())
	if err != nil {
		return err
	}
	short, err := restmapper.NewShortcutExpander(mapper, cached, nil).ResourceFor(widgetResource.GroupResource().WithVersion(""))
	if err != nil {
		return err
	}
	saw("mapped", facts{"resource": mapping.Resource.Resource, "scope": mapping.Scope.Name(), "version": short.Version})
	preferred, err := cached.ServerPreferredNamespacedResources()
	if err != nil {
		return err
	}
	paths, err := client.OpenAPIV3().Paths()
	if err != nil {
		return err
	}
	document, err := paths["apis/clients.porch.test/v1"].Schema("application/json")
	if err != nil {
		return err
	}
	saw("documented", facts{"preferred": len(preferred) > 0, "bytes": len(document) > 1000})
	return nil
}

func verbsByKind(lists []*metav1.APIResourceList) map[string][]string {
	found := map[string][]string{}
	for _, list := range lists {
		for _, resource := range list.APIResources {
			verbs := slices.Clone(resource.Verbs)
			slices.Sort(verbs)
			found[list.GroupVersion+" "+resource.Name] = verbs
		}
	}
	return found
}

func makeWidget(ctx context.Context, at place, name string) error {
	all, err := dynamic.NewForConfig(at.config)
	if err != nil {
		return err
	}
	widget := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(1), "color": "red"}}}
	widget.SetGroupVersionKind(widgetVersion.WithKind("Widget"))
	widget.SetName(name)
	_, err = all.Resource(widgetResource).Namespace(at.namespace).Create(ctx, widget, metav1.CreateOptions{})
	return err
}

// dynamicClient does everything once with a kind that the program has no type for.
func dynamicClient(ctx context.Context, at place) error {
	if err := makeWidget(ctx, at, "loose"); err != nil {
		return err
	}
	all, err := dynamic.NewForConfig(at.config)
	if err != nil {
		return err
	}
	widgets := all.Resource(widgetResource).Namespace(at.namespace)
	live, err := widgets.Get(ctx, "loose", metav1.GetOptions{})
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedField(live.Object, int64(9), "spec", "size"); err != nil {
		return err
	}
	if live, err = widgets.Update(ctx, live, metav1.UpdateOptions{}); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(live.Object, true, "status", "ready"); err != nil {
		return err
	}
	if live, err = widgets.UpdateStatus(ctx, live, metav1.UpdateOptions{}); err != nil {
		return err
	}
	saw("updated", facts{"spec": live.Object["spec"], "status": live.Object["status"], "generation": live.GetGeneration()})
	listed, err := all.Resource(widgetResource).List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=loose"})
	if err != nil {
		return err
	}
	saw("listed", facts{"kind": listed.GetKind(), "items": len(listed.Items), "version": listed.GetResourceVersion() != ""})
	return widgets.Delete(ctx, "loose", metav1.DeleteOptions{})
}

// recordEvents uses both recorders of controllers: the old one, which counts repeats, and the one of events.k8s.io.
func recordEvents(ctx context.Context, at place) error {
	client, err := kubernetes.NewForConfig(at.protobuf())
	if err != nil {
		return err
	}
	about, err := client.CoreV1().ConfigMaps(at.namespace).Create(
		ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "subject"}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	old := record.NewBroadcaster()
	defer old.Shutdown()
	old.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events(at.namespace)})
	recorder := old.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "old-recorder"})
	for range 3 {
		recorder.Event(about, corev1.EventTypeNormal, "Counted", "it happened")
	}
	recent := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	defer recent.Shutdown()
	if err := recent.StartRecordingToSinkWithContext(ctx); err != nil {
		return err
	}
	recent.NewRecorder(scheme.Scheme, "new-recorder").Eventf(about, nil, corev1.EventTypeWarning, "Noted", "Doing", "it %s", "failed")
	var counted *corev1.Event
	var noted *eventsv1.Event
	err = waitUntil(ctx, "both events are there", func(ctx context.Context) (bool, error) {
		if counted, err = coreEvent(ctx, client, at.namespace, about); err != nil {
			return false, err
		}
		noted, err = seriesEvent(ctx, client, at.namespace)
		return counted != nil && counted.Count == 3 && noted != nil, err
	})
	if err != nil {
		return err
	}
	saw("counted", facts{"count": counted.Count, "message": counted.Message, "component": counted.Source.Component})
	saw("noted", facts{
		"note": noted.Note, "action": noted.Action, "type": noted.Type,
		"regarding": noted.Regarding.Name, "controller": noted.ReportingController,
	})
	return nil
}

// coreEvent returns the repeated event, found as kubectl describe finds it; nil while there is none.
func coreEvent(ctx context.Context, client kubernetes.Interface, namespace string, about *corev1.ConfigMap) (*corev1.Event, error) {
	selector := fmt.Sprintf("involvedObject.uid=%s,reason=Counted", about.UID)
	found, err := client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: selector})
	if err != nil || len(found.Items) == 0 {
		return nil, err
	}
	return &found.Items[0], nil
}

func seriesEvent(ctx context.Context, client kubernetes.Interface, namespace string) (*eventsv1.Event, error) {
	found, err := client.EventsV1().Events(namespace).List(ctx, metav1.ListOptions{FieldSelector: "reason=Noted"})
	if err != nil || len(found.Items) == 0 {
		return nil, err
	}
	return &found.Items[0], nil
}

// serviceAccountToken becomes a service account by a token that the server issued, and asks who it is and what it may do.
func serviceAccountToken(ctx context.Context, at place) error {
	admin, err := kubernetes.NewForConfig(at.protobuf())
	if err != nil {
		return err
	}
	accounts := admin.CoreV1().ServiceAccounts(at.namespace)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "robot"}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil {
		return err
	}
	hour := int64(3600)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	granted, err := accounts.CreateToken(ctx, "robot", request, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	config := rest.AnonymousClientConfig(at.protobuf())
	config.BearerToken = granted.Status.Token
	robot, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	self, err := robot.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	saw("is", facts{"name": self.Status.UserInfo.Username, "groups": self.Status.UserInfo.Groups})
	attributes := &authorizationv1.ResourceAttributes{Namespace: at.namespace, Verb: "delete", Resource: "secrets"}
	question := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes}}
	may, err := robot.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, question, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = robot.CoreV1().Secrets(at.namespace).List(ctx, metav1.ListOptions{})
	saw("may", facts{"deleteSecrets": may.Status.Allowed, "listing": fmt.Sprint(err)})
	return nil
}
