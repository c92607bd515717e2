"""Test data into the books, by the operator (the command `tollgate payments import`)."""

from tollgate.serve.payments.api.bodies.requests import ImportCreate
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import BadRequest, FieldError
from tollgate.serve.payments.api.replies import Reply, encode_json
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.imports.files import read_import
from tollgate.serve.payments.imports.orders import import_data
from tollgate.serve.payments.reference.data_file import DataFileError, read_data_text


async def create_import(context: ApiContext, call: Call) -> Reply:
    """The file's own text is sent, so that refusals name its lines."""
    wanted = context.read(await call.body(), ImportCreate)
    name = wanted.name or "import"
    try:
        data = read_import(read_data_text(name, wanted.file.encode()), context.reference)
    except DataFileError as error:
        raise BadRequest(FieldError("file", str(error))) from None
    imported = await import_data(context, call, data)
    return Reply(201, encode_json({"imported": imported}))


ROUTES = (
    Route(
        "POST",
        "/operator/imports",
        create_import,
        "operator",
        "Import test data with ids and keys of its own",
        request="ImportCreate",
        reply="ImportReply",
        status=201,
        takes_key=False,
        description="The text of a file as `tollgate payments import` takes it. Importing the "
        "same file again changes nothing.",
        access=Access.OPERATOR,
    ),
)
