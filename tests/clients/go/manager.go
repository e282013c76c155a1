package main

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

const widgetFinalizer = "clients.porch.test/secret"

// widgets keeps, for every Widget, a Secret made of the ConfigMap of the same name: what most operators do.
type widgets struct{ client.Client }

func (r *widgets) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	widget := &Widget{}
	if err := r.Get(ctx, request.NamespacedName, widget); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !widget.DeletionTimestamp.IsZero() {
		saw("finalizing", facts{"name": widget.Name, "generation": widget.Generation})
		return reconcile.Result{}, r.changeFinalizers(ctx, widget, controllerutil.RemoveFinalizer)
	}
	if !controllerutil.ContainsFinalizer(widget, widgetFinalizer) {
		return reconcile.Result{}, r.changeFinalizers(ctx, widget, controllerutil.AddFinalizer)
	}
	return r.sync(ctx, widget)
}

func (r *widgets) changeFinalizers(
	ctx context.Context, widget *Widget, change func(client.Object, string) bool,
) error {
	before := widget.DeepCopyObject().(*Widget)
	if !change(widget, widgetFinalizer) {
		return nil
	}
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	return client.IgnoreNotFound(r.Patch(ctx, widget, patch))
}

func (r *widgets) sync(ctx context.Context, widget *Widget) (reconcile.Result, error) {
	source := &corev1.ConfigMap{}
	if err := r.Get(ctx, client.ObjectKeyFromObject(widget), source); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // its event comes
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: widget.Name, Namespace: widget.Namespace}}
	done, err := controllerutil.CreateOrUpdate(ctx, r.Client, secret, func() error {
		secret.Data = map[string][]byte{}
		for key, value := range source.Data {
			secret.Data[key] = []byte(value)
		}
		return controllerutil.SetControllerReference(widget, secret, r.Scheme())
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	saw("secret", facts{"name": secret.Name, "done": done})
	if widget.Status.Ready {
		return reconcile.Result{}, nil
	}
	widget.Status = WidgetStatus{Ready: true, Secret: secret.Name}
	return reconcile.Result{}, r.Status().Update(ctx, widget)
}

func runManager(ctx context.Context, at place) error {
	manager, err := ctrl.NewManager(at.config, ctrl.Options{
		Scheme:  schemeWithWidgets(),
		Metrics: metricsserver.Options{BindAddress: "0"},
		Cache:   cache.Options{DefaultNamespaces: map[string]cache.Config{at.namespace: {}}},
		// Leases are renewed for as long as the manager runs.
		LeaderElection:                true,
		LeaderElectionID:              "widgets.clients.porch.test",
		LeaderElectionNamespace:       at.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	byName := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, object client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(object)}}
	})
	err = ctrl.NewControllerManagedBy(manager).For(&Widget{}).Owns(&corev1.Secret{}).
		Watches(&corev1.ConfigMap{}, byName).Complete(&widgets{manager.GetClient()})
	if err != nil {
		return err
	}
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(running) }()
	err = liveOfWidget(ctx, manager.GetClient(), at.namespace)
	stop()
	if stopped := <-ended; err == nil {
		err = stopped
	}
	return err
}

// liveOfWidget is the user: it makes, changes and deletes a widget and waits for its operator each time.
func liveOfWidget(ctx context.Context, cached client.Client, namespace string) error {
	key := types.NamespacedName{Namespace: namespace, Name: "pump"}
	meta := metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}
	config := &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"pressure": "low"}}
	widget := &Widget{ObjectMeta: meta, Spec: WidgetSpec{Size: 3, Color: "red"}}
	for _, object := range []client.Object{config, widget} {
		if err := cached.Create(ctx, object); err != nil {
			return err
		}
	}
	if err := waitUntil(ctx, "the widget is ready", func(ctx context.Context) (bool, error) {
		err := cached.Get(ctx, key, widget)
		return err == nil && widget.Status.Ready, client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	saw("ready", facts{"secret": widget.Status.Secret, "size": widget.Spec.Size, "generation": widget.Generation})
	config.Data["pressure"] = "high"
	if err := cached.Update(ctx, config); err != nil {
		return err
	}
	secret := &corev1.Secret{}
	if err := waitUntil(ctx, "the secret follows", func(ctx context.Context) (bool, error) {
		err := cached.Get(ctx, key, secret)
		return err == nil && string(secret.Data["pressure"]) == "high", client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	saw("followed", facts{"owner": secret.OwnerReferences[0].Kind, "controller": *secret.OwnerReferences[0].Controller})
	return deleteWidget(ctx, cached, widget)
}

func deleteWidget(ctx context.Context, cached client.Client, widget *Widget) error {
	if err := cached.Delete(ctx, widget); err != nil {
		return err
	}
	if err := waitUntil(ctx, "the widget is gone", func(ctx context.Context) (bool, error) {
		err := cached.Get(ctx, client.ObjectKeyFromObject(widget), &Widget{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}); err != nil {
		return err
	}
	saw("gone", facts{"name": widget.Name})
	return nil
}

// waitUntil asks every 50 ms; its error says what was waited for.
func waitUntil(ctx context.Context, what string, done wait.ConditionWithContextFunc) error {
	if err := wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, done); err != nil {
		return fmt.Errorf("waiting until %s: %w", what, err)
	}
	return nil
}
