"""Test data into the books, by the operator (the command `tollgate payments import`)."""

from dataclasses import asdict

from serve.payments import constraints
from serve.payments.body_fields import BodyFields
from serve.payments.call import Call
from serve.payments.constraints import FieldError
from serve.payments.data_file import DATA_FILE_BYTES_MAX, DataFileError, read_data_text
from serve.payments.desk import Desk
from serve.payments.import_files import read_import
from serve.payments.importing import import_draft
from serve.payments.rejections import BadRequest
from serve.payments.routing import About, Access, Route
from serve.payments.wire_out import Reply, encode_json


async def import_file(desk: Desk, call: Call) -> Reply:
    """The file's own text is sent, so that refusals name its lines."""
    fields = BodyFields(await call.body())
    name = fields.may("name", constraints.name, "") or "import"
    text = fields.need("file", _file, "")
    fields.check()
    try:
        draft = read_import(read_data_text(name, text.encode()), desk.reference)
    except DataFileError as error:
        raise BadRequest(FieldError("file", str(error))) from None
    made = await import_draft(desk, call, draft)
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
        About(
            "operator",
            "Import test data with ids and keys of its own",
            request="ImportCreate",
            reply="ImportReply",
            status=201,
            takes_key=False,
            description="The text of a file as `tollgate payments import` takes it. Importing the "
            "same file again changes nothing.",
        ),
        Access.OPERATOR,
    ),
)
