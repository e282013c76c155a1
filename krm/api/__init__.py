"""The kinds we serve, as pydantic models; schemas and OpenAPI come from them."""
