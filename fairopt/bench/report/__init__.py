"""What is made of results: a page with tables and pictures, and figures for documents.

`studies` puts measurements in order and decides what counts as solved; `goals`, `tables` and `pictures` compute what is
shown; `page` hands that to the HTML templates beside it; `figures` writes Markdown.
"""
