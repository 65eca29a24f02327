"""The HTTP interface at `/api/v1`: every operation, documented by OpenAPI, with errors as problem documents.

`app` is the ASGI application and runs the operations, `streams` serves responses that are not one JSON document,
`openapi` generates the OpenAPI document from the same types, `guard` authenticates requests. Needs the extra `server`.
"""
