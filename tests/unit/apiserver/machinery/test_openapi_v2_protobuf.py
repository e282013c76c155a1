"""The protobuf form of OpenAPI v2, against bytes worked out by hand from the message types."""

from apiserver.machinery.openapi_v2_protobuf import encode_document, encode_schema


def test_scalars_are_tagged_with_their_field_number_and_length() -> None:
    assert encode_schema({"format": "int64"}) == b"\x12\x05int64"
    assert encode_schema({"$ref": "#/definitions/a"}) == b"\x0a\x0f#/definitions/a"
    assert encode_schema({"type": "string"}) == b"\xb2\x01\x08\x0a\x06string"
    assert encode_schema({"minLength": 300}) == b"\x60\xac\x02"


def test_schemas_nest() -> None:
    items = encode_schema({"items": {"format": "x"}})

    assert items == b"\xba\x01\x05\x0a\x03\x12\x01x"
    assert encode_schema({"properties": {"a": {"format": "x"}}}) == b"\xca\x01\x0a\x0a\x08\x0a\x01a\x12\x03\x12\x01x"


def test_extensions_travel_as_yaml_text() -> None:
    encoded = encode_schema({"x-kubernetes-list-type": "map"})

    assert encoded.startswith(b"\xfa\x01")
    assert b'\x12\x05"map"' in encoded


def test_keywords_without_a_field_are_left_out() -> None:
    assert encode_schema({"nullable": True}) == b""


def test_a_document_has_its_version_title_and_definitions() -> None:
    document = {"swagger": "2.0", "info": {"title": "T", "version": "1"}, "paths": {}, "definitions": {"a": {}}}

    assert (
        encode_document(document)
        == b"\x0a\x032.0" + b"\x12\x06\x0a\x01T\x12\x011" + b"\x4a\x07\x0a\x05\x0a\x01a\x12\x00"
    )
