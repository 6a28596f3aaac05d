"""Decisions from documents, without a database. Read ``decide`` first.

``decide``: decides a request document on a fleet document.
``read_document``: reads JSON documents; errors name file and position.
``load``: loads a fleet document into a temporary Roost.
``request_names``: resolves the names of a request document.
``refusals``: the refused hosts of each stage, with reasons.
``document_schemas``: the JSON Schemas of the documents.
"""
