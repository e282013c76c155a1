package main

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// repository is the registered repository that collisions happen in.
	repository = "collisions"
	// rounds is how many packages go through a whole life; a few seconds' worth.
	rounds = 20
	// deletions is how many delete one draft at once, as in upstream's suite.
	deletions = 8
)

var porch = schema.GroupVersion{Group: "porch.kpt.dev", Version: "v1alpha1"}

// collisions sends what upstream's suite of Porch sends from goroutines that start together: identical requests, of which
// one has to win and another has to be told. It prints what came of each.
func collisions(ctx context.Context, at place) error {
	all, err := client.New(at.config, client.Options{})
	if err != nil {
		return err
	}
	for round := range rounds {
		one := life{all, at.namespace, fmt.Sprintf("package-%d", round)}
		if err := one.collide(ctx); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	return nil
}

// life is one package on its way from its creation to its end, every step sent more than once.
type life struct {
	client    client.Client
	namespace string
	name      string
}

func (l life) collide(ctx context.Context) error {
	first, second := repository+"."+l.name+".v1", repository+"."+l.name+".v2"
	initialize := task("init", map[string]any{"description": l.name})
	l.together("init", 2, func() error { return l.client.Create(ctx, l.revision("v1", initialize)) })
	steps := []struct {
		what, kind, subresource, value string
		path                           []string
	}{
		{"files", "PackageRevisionResources", "", "changed", []string{"spec", "resources", "CHANGED.md"}},
		{"unchanged", "PackageRevision", "", "v1", []string{"spec", "workspaceName"}},
		{"propose", "PackageRevision", "", "Proposed", []string{"spec", "lifecycle"}},
		{"approve", "PackageRevision", "approval", "Published", []string{"spec", "lifecycle"}},
		{"propose deletion", "PackageRevision", "", "DeletionProposed", []string{"spec", "lifecycle"}},
	}
	for _, step := range steps {
		current := l.named(step.kind, first)
		if err := l.client.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
			return err
		}
		if err := unstructured.SetNestedField(current.Object, step.value, step.path...); err != nil {
			return err
		}
		l.together(step.what, 2, func() error { return l.update(ctx, current.DeepCopy(), step.subresource) })
	}
	edit := task("edit", map[string]any{"sourceRef": map[string]any{"name": first}})
	l.together("edit", 2, func() error { return l.client.Create(ctx, l.revision("v2", edit)) })
	for _, name := range []string{second, first} {
		l.together("delete", deletions, func() error { return l.client.Delete(ctx, l.named("PackageRevision", name)) })
	}
	return nil
}

func (l life) update(ctx context.Context, wanted client.Object, subresource string) error {
	if subresource != "" {
		return l.client.SubResource(subresource).Update(ctx, wanted)
	}
	return l.client.Update(ctx, wanted)
}

// together sends a request from several goroutines at once and prints what each came to.
func (l life) together(what string, count int, send func() error) {
	errors := make([]string, count)
	var all sync.WaitGroup
	for number := range count {
		all.Add(1)
		go func() {
			defer all.Done()
			if err := send(); err != nil {
				errors[number] = err.Error()
			}
		}()
	}
	all.Wait()
	saw("collision", facts{"of": what, "package": l.name, "errors": errors})
}

func (l life) named(kind, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetGroupVersionKind(porch.WithKind(kind))
	made.SetNamespace(l.namespace)
	made.SetName(name)
	return made
}

func (l life) revision(workspace string, task map[string]any) *unstructured.Unstructured {
	made := l.named("PackageRevision", "")
	made.Object["spec"] = map[string]any{
		"packageName": l.name, "repository": repository, "workspaceName": workspace, "tasks": []any{task},
	}
	return made
}

func task(kind string, block map[string]any) map[string]any {
	return map[string]any{"type": kind, kind: block}
}
