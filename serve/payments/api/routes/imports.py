"""Test data into the books, by the operator (the command `tollgate payments import`)."""

from dataclasses import asdict

from tollgate.serve.payments.api.bodies import constraints
from tollgate.serve.payments.api.bodies.constraints import FieldError
from tollgate.serve.payments.api.bodies.fields import BodyFields
from tollgate.serve.payments.api.call import Call
from tollgate.serve.payments.api.context import ApiContext
from tollgate.serve.payments.api.rejections import BadRequest
from tollgate.serve.payments.api.replies import Reply, encode_json
from tollgate.serve.payments.api.router import Access, Route
from tollgate.serve.payments.imports.files import read_import
from tollgate.serve.payments.imports.orders import import_draft
from tollgate.serve.payments.reference.data_file import (
    DATA_FILE_BYTES_MAX,
    DataFileError,
    read_data_text,
)


async def import_file(context: ApiContext, call: Call) -> Reply:
    """The file's own text is sent, so that refusals name its lines."""
    fields = BodyFields(await call.body())
    name = fields.may("name", constraints.name, "") or "import"
    text = fields.need("file", _file, "")
    fields.check()
    try:
        draft = read_import(read_data_text(name, text.encode()), context.reference)
    except DataFileError as error:
        raise BadRequest(FieldError("file", str(error))) from None
    made = await import_draft(context, call, draft)
    return Reply(201, encode_json({"imported": asdict(made)}))


def _file(value: object, field: str) -> str | FieldError:
    if not isinstance(value, str) or len(value) > DATA_FILE_BYTES_MAX:
        return FieldError(field, "must be the text of a file")
    return value


ROUTES = (
    Route(
        "POST",
        "/operator/imports",
        import_file,
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
