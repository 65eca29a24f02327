"""The HTTP interface at `/api/v1`: every operation, documented by OpenAPI, errors as problems.

`app` is the ASGI application, `dispatch` carries out the operations, `streams` answers what is not
one JSON document, `openapi` writes the document from the same types; `guard` decides who may come in. Needs the extra
`server`.
"""
