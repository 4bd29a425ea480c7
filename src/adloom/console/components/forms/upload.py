"""A place to drop, paste or choose a file for a banner; what the file says of itself goes into the form."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

from nicegui import events, ui

from adloom.console.client import ApiClient, Json, ProblemError
from adloom.console.components.forms.form import Form
from adloom.console.components.layout import add_hint, set_attributes
from adloom.console.components.messages import notify_error, notify_success

ACCEPTED: Final = "image/jpeg,image/png,image/webp,image/gif,image/svg+xml,video/mp4,.zip"
BYTES_MAX: Final = 64 * 2**20  # The API knows the bounds of each kind.
UNNAMED: Final = "Unnamed"
NOTE: Final = "JPEG, PNG, WebP, GIF, SVG, MP4, or a zip with an HTML5 creative. A picture can also be pasted."
# Quasar's own has a field without a name inside a button without a name.
HEADER: Final = """
    <div class="row items-center no-wrap">
      <div class="col">Drop a file here, or choose one</div>
      <q-btn flat dense icon="add_box" label="Choose a file" @click="props.pickFiles" />
      <div class="hidden"><q-uploader-add-trigger /></div>
    </div>
"""
# A file that Quasar itself refuses, and why.
REFUSED: Final = "([one]) => emit([one.failedPropValidation, one.file.name])"
PICTURES: Final = "image/jpeg,image/png,image/webp,image/gif,image/svg+xml"
PICTURES_NOTE: Final = "JPEG, PNG, WebP, GIF or SVG. A picture can also be pasted."


def add_upload(
    form: Form,
    api: ApiClient,
    *,
    accepted: str = ACCEPTED,
    note: str = NOTE,
    on_file: Callable[[Json], None] = lambda _: None,
) -> None:
    """Add the place to a form of a banner; `on_file` gets all fields that a file fills, with those that the form lacks."""

    async def take(event: events.UploadEventArguments) -> None:
        data = await event.file.read()
        owner = form.read_values().get("advertiserId") or form.get_initial("advertiserId")
        try:
            asset = await api.upload(
                "/admin/assets", data, name=event.file.name or UNNAMED, advertiserId=owner
            )
        except ProblemError as error:
            notify_error(error.message)
            return
        finally:
            upload.reset()
        fields = describe_file(asset, form.read_values())
        on_file(fields)
        form.fill(fields)
        notify_success(f"“{asset['name']}” is uploaded.")

    upload = add_file_field(accepted, note, take)


def add_file_field(
    accepted: str,
    note: str,
    on_upload: Callable[[events.UploadEventArguments], Awaitable[None]],
) -> ui.upload:
    """Add the place where a file is dropped or chosen; `note` says which kinds of files it takes."""

    def refuse(event: events.GenericEventArguments) -> None:
        reason, name = event.args
        about = (
            f"is larger than {BYTES_MAX // 2**20} MB."
            if reason == "max-file-size"
            else f"is of no kind that fits here. {note}"
        )
        notify_error(f"“{name}” {about}")

    upload = ui.upload(auto_upload=True, max_file_size=BYTES_MAX, on_upload=on_upload)
    upload.on("rejected", refuse, js_handler=REFUSED)
    set_attributes(upload, accept=accepted).props("flat bordered").classes("full al-upload")
    upload.add_slot("header", HEADER)
    add_hint(note)
    return upload


def describe_file(asset: Json, values: Json) -> dict[str, Any]:
    """Return the fields of a banner that a file fills; what has another picture on phones loses it."""
    variants: dict[str, str] = dict(values.get("mediaVariants") or {})
    size = {"width": asset["width"], "height": asset["height"]} if asset["width"] else {}
    match asset["kind"]:
        case "video":
            return {"videoUrl": asset["url"]}
        case "html":
            return {**size, "mediaVariants": {**variants, "html": asset["url"]}}
        case _:
            others = {name: address for name, address in variants.items() if name not in {"mobile", "tablet"}}
            smaller = {name: address for name, address in asset["variants"].items() if name != "mobile"}
            return {
                **size,
                "primaryImageUrl": asset["url"],
                "mobileImageUrl": asset["variants"].get("mobile", ""),
                "mediaVariants": {**others, **smaller},
            }
