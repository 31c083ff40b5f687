# SPDX-License-Identifier: Apache-2.0
"""Renders a run document as one HTML page that needs no network."""


def page_html(document):
    return "<!doctype html>"
