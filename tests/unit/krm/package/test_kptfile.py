import pytest

from krm.package.kptfile import KptfileEdit, KptfileError, RenderedStatus, edit_kptfile, parse_kptfile

KPTFILE = b"""\
# head
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: app # the name
  labels:
    version: 1.10
  annotations:
    config.kubernetes.io/local-config: "true"
upstream:
  type: git
  git:
    repo: https://example.com/a.git
    directory: /app
    ref: v1
  updateStrategy: resource-merge
info:
  readinessGates:
    - conditionType: a.Ready # gate
pipeline:
  mutators:
    # labels
    - image: set-labels:v0.2
      configMap:
        replicas: 3
      selectors:
        - kind: Deployment
  validators:
    - image: kubeconform
      configPath: conf.yaml
      tag: ~0.1
status:
  conditions:
    - type: a.Ready
      status: maybe
      message: wait
"""


def test_all_parts_are_decoded() -> None:
    kptfile = parse_kptfile(KPTFILE)

    assert kptfile.name == "app"
    assert kptfile.labels == {"version": "1.10"}
    assert kptfile.upstream is not None
    assert kptfile.upstream["git"]["ref"] == "v1"
    assert kptfile.upstream_lock is None
    assert kptfile.readiness_gates == ("a.Ready",)
    assert kptfile.mutators[0].config_map == {"replicas": "3"}
    assert kptfile.mutators[0].selectors[0].kind == "Deployment"
    assert (kptfile.validators[0].config_path, kptfile.validators[0].tag) == ("conf.yaml", "~0.1")


def test_unknown_condition_status_becomes_unknown() -> None:
    assert parse_kptfile(KPTFILE).conditions == ({"type": "a.Ready", "status": "Unknown", "message": "wait"},)


HEAD = "apiVersion: kpt.dev/v1\nkind: Kptfile\n"


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        (HEAD + "metadata:\n  name: a\n  uid: b\n", "metadata.uid", 5),
        (HEAD + "pipeline:\n  mutators:\n  - image: a\n    foo: b\n", "pipeline.mutators[0].foo", 6),
        (HEAD + "metadata: []\n", "metadata", 3),
        (HEAD + "info:\n  keywords: x\n", "info.keywords", 4),
        (HEAD + "metadata:\n  labels:\n    a: [b]\n", "metadata.labels.a", 5),
        (HEAD + "metadata:\n  name: a\n  name: b\n", "", 5),
        ("a: b\n", "kind", 0),
        ("apiVersion: kpt.dev/v1alpha2\nkind: Kptfile\n", "apiVersion", 0),
        ("- a\n", "", 0),
        ("", "", 0),
        (HEAD + "---\n" + HEAD, "", 0),
        ("a: b: c\n", "", 1),
    ],
)
def test_faulty_kptfile_is_refused_with_its_place(text: str, key: str, line: int) -> None:
    with pytest.raises(KptfileError) as caught:
        parse_kptfile(text.encode(), "sub/Kptfile")

    assert (caught.value.path, caught.value.key, caught.value.line) == ("sub/Kptfile", key, line)


def test_faults_are_told_as_the_decoder_tells_them() -> None:
    text = HEAD + "metadata:\n  name: a\n  uid: b\npipeline:\n  mutators:\n  - image: [a]\n    targetResources: x\n"

    with pytest.raises(KptfileError) as caught:
        parse_kptfile(text.encode())

    assert caught.value.problem == (
        "yaml: unmarshal errors:\n"
        "  line 5: field uid not found in type yaml.ResourceMeta\n"
        "  line 8: cannot unmarshal !!seq into string\n"
        "  line 9: field targetResources not found in type v1.Function"
    )


def test_key_that_stands_twice_is_told_with_both_lines() -> None:
    with pytest.raises(KptfileError) as caught:
        parse_kptfile((HEAD + "metadata:\n  name: a\n  name: b\n").encode())

    assert caught.value.problem == ('yaml: unmarshal errors:\n  line 5: mapping key "name" already defined at line 4')


def test_scalars_of_any_kind_are_text() -> None:
    text = HEAD + (
        "metadata: {name: 1.10, labels: {a: yes, b: 0x1f, c: null}}\n"
        "pipeline:\n  mutators:\n  - image: x\n    selectors:\n    - {kind: 1, name: true, labels: {v: 1.0}}\n"
    )
    kptfile = parse_kptfile(text.encode())

    assert (kptfile.name, kptfile.labels) == ("1.10", {"a": "yes", "b": "0x1f", "c": ""})
    selector = kptfile.mutators[0].selectors[0]
    assert (selector.kind, selector.name, selector.labels) == ("1", "true", {"v": "1.0"})


@pytest.mark.parametrize(
    "edit",
    [
        KptfileEdit(),
        KptfileEdit(name="app", labels={"version": "1.10"}, readiness_gates=["a.Ready"]),
        KptfileEdit(
            labels={"version": "1.10"}, annotations={"config.kubernetes.io/local-config": "true"}, replace_metadata=True
        ),
        KptfileEdit(conditions=[{"type": "a.Ready", "status": "maybe", "message": "wait"}]),
    ],
)
def test_edit_that_changes_nothing_gives_the_same_bytes(edit: KptfileEdit) -> None:
    assert edit_kptfile(KPTFILE, edit) == KPTFILE


def test_rendered_twice_is_rendered_once() -> None:
    edit = KptfileEdit(rendered=RenderedStatus())
    once = edit_kptfile(KPTFILE, edit)

    assert edit_kptfile(once, edit) == once
    assert parse_kptfile(once).conditions[-1] == {"type": "Rendered", "status": "True", "reason": "RenderSuccess"}
    assert set(KPTFILE.splitlines()) < set(once.splitlines())


def test_metadata_is_added_or_replaced_as_asked() -> None:
    added = edit_kptfile(KPTFILE, KptfileEdit(labels={"a": "true"}))
    replaced = edit_kptfile(KPTFILE, KptfileEdit(labels={"a": "true"}, replace_metadata=True))

    assert parse_kptfile(added).labels == {"version": "1.10", "a": "true"}
    assert parse_kptfile(replaced).labels == {"a": "true"}
    assert b"    version: 1.10\n" in added
    assert b'a: "true"' in replaced


def test_sections_are_replaced_and_comments_stay() -> None:
    locks = {"type": "git", "git": {"repo": "r", "directory": "d", "ref": "v2", "commit": "1e3"}}
    edit = KptfileEdit(
        name="new", upstream={"type": "git"}, upstream_lock=locks, readiness_gates=["a.Ready", "b"], conditions=[]
    )
    edited = edit_kptfile(KPTFILE, edit)
    kptfile = parse_kptfile(edited)

    assert (kptfile.name, kptfile.upstream, kptfile.upstream_lock) == ("new", {"type": "git"}, locks)
    assert kptfile.readiness_gates == ("a.Ready", "b")
    assert kptfile.conditions == ()
    for comment in (b"# head", b"# the name", b"# gate", b"# labels"):
        assert comment in edited
    assert edited.index(b"upstream:") < edited.index(b"upstreamLock:") < edited.index(b"info:")


def test_failure_is_noted_with_its_message() -> None:
    status = RenderedStatus(succeeded=False, message="pkg.render: pkg .:\n\tno", render_status={"errorSummary": "x"})
    kptfile = parse_kptfile(edit_kptfile(KPTFILE, KptfileEdit(rendered=status)))

    assert kptfile.conditions[-1]["message"] == "pkg.render: pkg .:\n\tno"
    assert kptfile.raw["status"]["renderStatus"] == {"errorSummary": "x"}


def test_kptfile_that_is_no_mapping_cannot_be_edited() -> None:
    with pytest.raises(KptfileError):
        edit_kptfile(b"- a\n", KptfileEdit(name="x"))


FUNCTIONS = (
    HEAD
    + """\
metadata:
  name: app
pipeline:
  mutators:
  # of the platform team
  - image: set-labels:v0.2 # pinned
    configMap: {replicas: 010}
  - name: old
    image: apply-setters
status:
  conditions: [{type: Rendered, status: True}]
"""
)


def test_functions_are_put_into_a_pipeline_and_others_stay_as_they_are_written() -> None:
    labels = {"image": "set-labels:v0.2", "configMap": {"replicas": "010"}}
    new = {"name": "new", "image": "set-namespace"}
    edit = KptfileEdit(pipeline={"mutators": [new, labels]}, conditions=[{"type": "Rendered", "status": "True"}])

    edited = edit_kptfile(FUNCTIONS.encode(), edit)

    assert edited.decode() == FUNCTIONS.replace("  - name: old\n    image: apply-setters\n", "").replace(
        "  mutators:\n", "  mutators:\n  - name: new\n    image: set-namespace\n"
    )
    assert edit_kptfile(edited, edit) == edited


def test_a_pipeline_without_functions_goes_with_its_empty_lists() -> None:
    text = FUNCTIONS.replace("pipeline:\n", "pipeline:\n  validators: []\n")

    assert edit_kptfile(text.encode(), KptfileEdit(pipeline={"validators": []})) == text.encode()
    assert b"pipeline" not in edit_kptfile(text.encode(), KptfileEdit(pipeline={"mutators": []}))


@pytest.mark.parametrize(
    ("pipeline", "key"), [("[a]", "pipeline"), ("{mutators: {a: b}}", "pipeline.mutators"), ("x", "pipeline")]
)
def test_a_pipeline_that_is_none_is_not_edited(pipeline: str, key: str) -> None:
    with pytest.raises(KptfileError) as caught:
        edit_kptfile(f"{HEAD}pipeline: {pipeline}\n".encode(), KptfileEdit(pipeline={"validators": [{"image": "a"}]}))

    assert caught.value.key == key
