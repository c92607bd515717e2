"""The rules of the catalogue, a file for each subject; each ends with its RULES.

C01 C02 C03 C04                   schemes/custom_types.py
D01 D02                           structure/descriptions.py
E01 E02 E03 E06 E09               structure/declaration.py
E04 E05 E07 E08                   structure/declared_version.py
G01 G04 G06 G07 G10 G12 G13       schemes/signed_url.py
G02 G03 G05 G08 G09 G11           schemes/signed_url_parameters.py
H01 H02 H03 H04 H05               schemes/http.py
K01 K02 K03 K04 K05               schemes/api_key.py
O01 O04 O10 O11 O12               schemes/flow_names.py
O02 O07 O08 O09                   schemes/endpoints.py
O05 O06 O13 O14                   schemes/oauth2.py
R01 R02 R07 R11                   references/dangling_references.py
R03 R08 R09 R10                   references/inheritance.py
R04                               references/unused_schemes.py
R05 R06                           references/reference_lists.py
R12 R18                           references/gated_assets.py
R13 R14 R15 R16 R17               references/chains.py
S01 S02 S16 S17 S18 S19 S21       structure/placement.py
S03 S04 S05 S06 S07 S08 S15 S20   structure/scheme_fields.py
S09 S10 S11 S12 S13 S14           structure/flow_fields.py
T01 T02 T03 T04 T05               schemes/object_storage.py
X01 X02 X05                       exposure/leaking_urls.py
X03 X04                           exposure/secrets.py
X06 X07 X08                       exposure/addresses.py
"""
