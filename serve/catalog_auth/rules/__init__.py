"""The rules of the catalogue, a file for each subject; each ends with its RULES.

C         schemes/custom_types.py
D         structure/descriptions.py
E         structure/declaration.py
G         schemes/signed_url.py; of its parameters: schemes/signed_url_parameters.py
H         schemes/http.py
K         schemes/api_key.py
O         schemes/oauth2.py; endpoints: schemes/endpoints.py; keys of flows:
          schemes/flow_names.py
R         references/references.py; chains (R13 to R17): references/chains.py; documents above
          and assets beside (R08 to R10, R12, R18): references/inheritance.py
S         structure/scheme_fields.py; places (S01, S02, S16 to S19, S21): structure/placement.py;
          flows and parameters (S09 to S14): structure/flow_fields.py
T         schemes/object_storage.py
X         exposure/secrets.py; URLs: exposure/leaking_urls.py; hosts: exposure/addresses.py
"""
