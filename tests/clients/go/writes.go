package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// allPatches sends every type of patch to a built-in kind and to a custom one.
func allPatches(ctx context.Context, at place) error {
	typed, err := kubernetes.NewForConfig(at.protobuf())
	if err != nil {
		return err
	}
	maps := typed.CoreV1().ConfigMaps(at.namespace)
	meta := metav1.ObjectMeta{Name: "patched", Finalizers: []string{"clients.porch.test/one"}}
	if _, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{}); err != nil {
		return err
	}
	for _, one := range []struct {
		kind types.PatchType
		body string
	}{
		{types.JSONPatchType, `[{"op":"add","path":"/data","value":{"json":"1"}}]`},
		{types.MergePatchType, `{"data":{"merge":"2"}}`},
		{types.StrategicMergePatchType, `{"data":{"strategic":"3"},"metadata":{"finalizers":["clients.porch.test/two"]}}`},
		{types.ApplyPatchType, `{"apiVersion":"v1","kind":"ConfigMap","data":{"apply":"4"}}`},
		{types.MergePatchType, `{"metadata":{"finalizers":null}}`},
	} {
		options := metav1.PatchOptions{FieldManager: "patches"}
		changed, err := maps.Patch(ctx, "patched", one.kind, []byte(one.body), options)
		if err != nil {
			return fmt.Errorf("%s: %w", one.kind, err)
		}
		saw("patched", facts{"type": string(one.kind), "data": changed.Data, "finalizers": changed.Finalizers})
	}
	return patchWidget(ctx, at)
}

func patchWidget(ctx context.Context, at place) error {
	if err := makeWidget(ctx, at, "patched"); err != nil {
		return err
	}
	all, err := dynamic.NewForConfig(at.config)
	if err != nil {
		return err
	}
	widgets := all.Resource(widgetResource).Namespace(at.namespace)
	for _, one := range []struct {
		kind        types.PatchType
		body        string
		subresource []string
	}{
		{types.MergePatchType, `{"spec":{"size":5},"status":{"ready":true}}`, nil},
		{types.JSONPatchType, `[{"op":"replace","path":"/spec/color","value":"blue"}]`, nil},
		{types.MergePatchType, `{"spec":{"size":6},"status":{"ready":true}}`, []string{"status"}},
		{types.StrategicMergePatchType, `{"spec":{"size":7}}`, nil},
		{types.JSONPatchType, `[{"op":"test","path":"/spec/size","value":99}]`, nil},
	} {
		changed, err := widgets.Patch(ctx, "patched", one.kind, []byte(one.body), metav1.PatchOptions{}, one.subresource...)
		line := facts{"type": string(one.kind), "reason": string(apierrors.ReasonForError(err))}
		if err == nil {
			line["spec"], line["status"] = changed.Object["spec"], changed.Object["status"]
			line["generation"] = changed.GetGeneration()
		}
		saw("widget", line)
	}
	return nil
}

// serverSideApply has two managers apply the same object: a conflict, force, and a field given up.
func serverSideApply(ctx context.Context, at place) error {
	typed, err := kubernetes.NewForConfig(at.config)
	if err != nil {
		return err
	}
	maps := typed.CoreV1().ConfigMaps(at.namespace)
	apply := func(manager string, force bool, data map[string]string) error {
		wanted := applycorev1.ConfigMap("applied", at.namespace).WithData(data).WithLabels(map[string]string{"by": "apply"})
		options := metav1.ApplyOptions{FieldManager: manager, Force: force}
		applied, err := maps.Apply(ctx, wanted, options)
		line := facts{"manager": manager, "reason": string(apierrors.ReasonForError(err)), "fields": conflictFields(err)}
		if err == nil {
			line["data"], line["owners"] = applied.Data, managers(applied.ManagedFields)
		}
		saw("applied", line)
		if apierrors.IsConflict(err) {
			return nil
		}
		return err
	}
	err = errors.Join(
		apply("one", false, map[string]string{"a": "1", "b": "1"}),
		apply("two", false, map[string]string{"a": "2"}),
		apply("two", true, map[string]string{"a": "2"}),
		apply("one", false, map[string]string{"b": "1"}),
		apply("one", false, map[string]string{}),
	)
	if err != nil {
		return err
	}
	live, err := maps.Get(ctx, "applied", metav1.GetOptions{})
	if err != nil {
		return err
	}
	owned, err := applycorev1.ExtractConfigMap(live, "two")
	if err != nil {
		return err
	}
	saw("extracted", facts{"data": owned.Data})
	return applyWidget(ctx, at)
}

func applyWidget(ctx context.Context, at place) error {
	runtimeClient, err := client.New(at.config, client.Options{Scheme: schemeWithWidgets()})
	if err != nil {
		return err
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(2)}}}
	wanted.SetGroupVersionKind(widgetVersion.WithKind("Widget"))
	wanted.SetName("applied")
	wanted.SetNamespace(at.namespace)
	for range 2 {
		configuration := client.ApplyConfigurationFromUnstructured(wanted.DeepCopy())
		if err := runtimeClient.Apply(ctx, configuration, client.FieldOwner("runtime")); err != nil {
			return err
		}
		live := &Widget{}
		if err := runtimeClient.Get(ctx, types.NamespacedName{Namespace: at.namespace, Name: "applied"}, live); err != nil {
			return err
		}
		saw("widget", facts{"size": live.Spec.Size, "generation": live.Generation, "owners": managers(live.ManagedFields)})
	}
	return nil
}

// conflictFields returns what an apply's conflict names.
func conflictFields(err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, fmt.Sprintf("%s %s", cause.Type, cause.Field))
	}
	return fields
}

// managers returns who owns what, sorted: "manager operation: the top-level fields".
func managers(entries []metav1.ManagedFieldsEntry) []string {
	var owners []string
	for _, entry := range entries {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(entry.FieldsV1.Raw, &fields); err != nil {
			owners = append(owners, err.Error())
			continue
		}
		var names []string
		for name := range fields {
			names = append(names, name)
		}
		slices.Sort(names)
		owners = append(owners, fmt.Sprintf("%s %s %s: %v", entry.Manager, entry.Operation, entry.Subresource, names))
	}
	slices.Sort(owners)
	return owners
}

// typedErrors provokes the errors that controllers decide by.
func typedErrors(ctx context.Context, at place) error {
	typed, err := kubernetes.NewForConfig(at.protobuf())
	if err != nil {
		return err
	}
	maps := typed.CoreV1().ConfigMaps(at.namespace)
	meta := metav1.ObjectMeta{Name: "contested"}
	first, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	failed := func(what string, err error) {
		saw("failed", facts{"what": what, "reason": string(apierrors.ReasonForError(err))})
	}
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	failed("create twice", err)
	_, err = maps.Get(ctx, "absent", metav1.GetOptions{})
	failed("get absent", err)
	_, err = maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "A_b"}}, metav1.CreateOptions{})
	failed("create badly named", err)
	stale := first.DeepCopy()
	first.Data = map[string]string{"who": "first"}
	if _, err = maps.Update(ctx, first, metav1.UpdateOptions{}); err != nil {
		return err
	}
	_, err = maps.Update(ctx, stale, metav1.UpdateOptions{})
	failed("update stale", err)
	other := types.UID("00000000-0000-0000-0000-000000000000")
	err = maps.Delete(ctx, "contested", *metav1.NewPreconditionDeleteOptions(string(other)))
	failed("delete another uid", err)
	_, err = typed.CoreV1().ConfigMaps("no-such-namespace").Create(ctx, &corev1.ConfigMap{ObjectMeta: meta}, metav1.CreateOptions{})
	failed("create in no namespace", err)
	attempts := 0
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if attempts++; attempts > 1 {
			if stale, err = maps.Get(ctx, "contested", metav1.GetOptions{}); err != nil {
				return err
			}
		}
		_, err := maps.Update(ctx, stale, metav1.UpdateOptions{})
		return err
	})
	saw("retried", facts{"attempts": attempts, "ok": err == nil})
	immediately := int64(0)
	return maps.DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &immediately}, metav1.ListOptions{})
}
