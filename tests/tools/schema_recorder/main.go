// Answers, line by line, what the validators of apiextensions-apiserver say of schemas and of custom resources.
//
// A line of input is {"definition": {...}} (a CustomResourceDefinition) or {"schema": {...}, "object": {...}, "old": {...}}.
// Used by record.py, which keeps the answers in tests/data/kube_schema.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	definitions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	kubejson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

const longestLine = 64 << 20

const unchecked = "some validation rules were not checked because the object was invalid; " +
	"correct the existing errors to complete validation"

type question struct {
	Definition json.RawMessage `json:"definition"`
	Schema     json.RawMessage `json:"schema"`
	Object     json.RawMessage `json:"object"`
	Old        json.RawMessage `json:"old"`
}

type answer struct {
	Causes  [][3]string    `json:"causes,omitempty"`
	Unknown []string       `json:"unknown,omitempty"`
	Result  map[string]any `json:"result,omitempty"`
	Error   string         `json:"error,omitempty"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var line bytes.Buffer
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(answered(lines.Bytes())); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Stdout.Write(line.Bytes())
	}
}

func answered(line []byte) answer {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Error: err.Error()}
	}
	judge := judgeObject
	if len(asked.Definition) > 0 {
		judge = judgeDefinition
	}
	found, err := judge(asked)
	if err != nil {
		return answer{Error: err.Error()}
	}
	return found
}

func judgeDefinition(asked question) (answer, error) {
	var stated apiextensionsv1.CustomResourceDefinition
	if err := kubejson.Unmarshal(asked.Definition, &stated); err != nil {
		return answer{}, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(&stated)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&stated.Spec)
	var definition apiextensions.CustomResourceDefinition
	err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(&stated, &definition, nil)
	if err != nil {
		return answer{}, err
	}
	return answer{Causes: told(definitions.ValidateCustomResourceDefinition(context.Background(), &definition))}, nil
}

func judgeObject(asked question) (answer, error) {
	props, structural, err := compiled(asked.Schema)
	if err != nil {
		return answer{}, err
	}
	object, old, err := decodedPair(asked)
	if err != nil {
		return answer{}, err
	}
	problem, unknown := objectmeta.CoerceWithOptions(nil, object, structural, false, objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	if problem != nil {
		return answer{}, problem
	}
	unknown = append(unknown, pruning.PruneWithOptions(object, structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	defaulting.PruneNonNullableNullsWithoutDefaults(object, structural)
	defaulting.Default(object, structural)
	problems, err := validated(props, structural, object, old)
	return answer{Causes: told(problems), Unknown: unknown, Result: object}, err
}

func compiled(raw json.RawMessage) (*apiextensions.JSONSchemaProps, *schema.Structural, error) {
	var stated apiextensionsv1.JSONSchemaProps
	if err := kubejson.Unmarshal(raw, &stated); err != nil {
		return nil, nil, err
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&stated, &props, nil); err != nil {
		return nil, nil, err
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, nil, err
	}
	return &props, structural, defaulting.PruneDefaults(structural)
}

func decodedPair(asked question) (object, old map[string]any, err error) {
	if err = kubejson.Unmarshal(asked.Object, &object); err == nil && len(asked.Old) > 0 {
		err = kubejson.Unmarshal(asked.Old, &old)
	}
	return object, old, err
}

// validated goes through the stages of a custom resource's write: values, embedded objects, lists, CEL rules.
func validated(props *apiextensions.JSONSchemaProps, structural *schema.Structural, object, old map[string]any) (field.ErrorList, error) {
	validator, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	var problems field.ErrorList
	var ratcheting []cel.Option
	var before any
	if old == nil {
		problems = validation.ValidateCustomResource(nil, object, validator)
	} else {
		before = old
		correlated := common.NewCorrelatedObject(object, old, &model.Structural{Structural: structural})
		problems = validation.ValidateCustomResourceUpdate(nil, object, old, validator, validation.WithRatcheting(correlated))
		ratcheting = append(ratcheting, cel.WithRatcheting(correlated))
	}
	problems = append(problems, objectmeta.Validate(nil, object, structural, false)...)
	if old == nil || len(listtype.ValidateListSetsAndMaps(nil, structural, old)) == 0 {
		problems = append(problems, listtype.ValidateListSetsAndMaps(nil, structural, object)...)
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	if rules == nil {
		return problems, nil
	}
	if blocks(problems) {
		return append(problems, field.Invalid(nil, nil, unchecked)), nil
	}
	failed, _ := rules.Validate(context.Background(), nil, structural, object, before, celconfig.RuntimeCELCostBudget, ratcheting...)
	return append(problems, failed...), nil
}

func blocks(problems field.ErrorList) bool {
	for _, problem := range problems {
		switch problem.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

func told(problems field.ErrorList) [][3]string {
	var causes [][3]string
	for _, problem := range problems {
		causes = append(causes, [3]string{string(problem.Type), problem.Field, problem.ErrorBody()})
	}
	return causes
}
