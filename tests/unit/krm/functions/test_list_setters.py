from function_run import resources_of, run_function

KPTFILE = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: x
pipeline:
  mutators:
    - image: gcr.io/kpt-fn/set-labels:v0.2
      configMap:
        app: x
    - image: gcr.io/kpt-fn/apply-setters:v0.2
      configPath: setters.yaml
    - image: apply-setters
      configMap:
        inline: "true"
"""
SETTERS = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: setters
data:
  env: |
    - prod
    - dev
  nginx-replicas: "3"
  tag: 1.16.2
  unused: 1.5
"""
RESOURCES = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: my-nginx
spec:
  replicas: 4 # kpt-set: ${nginx-replicas}
  image: "nginx:1.16.1" # kpt-set: ${image}:${tag}
  other: nginx:1.16.1 # kpt-set: nginx:${tag}
  environments: # kpt-set: ${env}
    - dev
    - stage
  ports: [80, 81] # kpt-set: ${ports}
  word: yes # kpt-set: ${word}
"""


def _listed(*files: tuple[str, str]) -> list[dict[str, object]]:
    items = [item for path, text in files for item in resources_of(text, path)]
    texts = [item.text() for item in items]
    result = run_function("list-setters", items)
    assert result.exit_code == 0
    assert [item.text() for item in result.items] == texts
    return result.results


def test_setters_of_pipeline_and_comments_are_listed_by_name() -> None:
    results = _listed(("Kptfile", KPTFILE), ("setters.yaml", SETTERS), ("resources.yaml", RESOURCES))

    assert [item["message"] for item in results] == [
        "Name: env, Value: [prod, dev], Type: array, Count: 1",
        "Name: image, Value: nginx, Type: str, Count: 1",
        "Name: inline, Value: true, Type: bool, Count: 0",
        "Name: nginx-replicas, Value: 3, Type: int, Count: 1",
        "Name: ports, Value: [80, 81], Type: array, Count: 1",
        "Name: tag, Value: 1.16.2, Type: str, Count: 2",
        "Name: unused, Value: 1.5, Type: float, Count: 0",
        "Name: word, Value: yes, Type: str, Count: 1",
    ]
    assert {item["severity"] for item in results} == {"info"}


def test_setters_of_comments_alone_have_the_values_of_their_fields() -> None:
    results = _listed(("resources.yaml", RESOURCES))

    assert results[2]["message"] == "Name: nginx-replicas, Value: 4, Type: int, Count: 1"


def test_package_without_setters_is_warned_about() -> None:
    for files in ((), (("resources.yaml", "apiVersion: v1\nkind: A\nmetadata:\n  name: x # kpt-merge: a/b\n"),)):
        assert _listed(*files) == [{"message": "no setters found", "severity": "warning"}]


def test_configuration_that_is_missing_or_no_map_is_passed_over() -> None:
    strange = KPTFILE.replace("setters.yaml", "none.yaml").replace('        inline: "true"', "        []")

    assert _listed(("Kptfile", strange)) == [{"message": "no setters found", "severity": "warning"}]


def test_kptfiles_of_subpackages_do_not_configure() -> None:
    assert _listed(("sub/Kptfile", KPTFILE)) == [{"message": "no setters found", "severity": "warning"}]
