"""Takes a user out of a dead letter."""

from typing import Final, cast

from adloom.events.log.personal import remove_user
from adloom.events.log.stream import DEAD_STREAM
from adloom.events.projections.dead_letters import INDEX, Redelivery, encode_redelivery, unwrap_redelivery
from adloom.runtime.valkey import Valkey, unavailable_when_away

# Add the letter as it is to be, and remove it as it was, both or neither. Without new data it is only removed.
REPLACE_SCRIPT: Final = """
local dead, index = KEYS[1], KEYS[2]
local found = redis.call('XRANGE', dead, ARGV[1], ARGV[1])
if #found == 0 then return 0 end
local letter, fields = {}, found[1][2]
for i = 1, #fields, 2 do letter[fields[i]] = fields[i + 1] end
local field = (letter['projection'] or '') .. ' ' .. (letter['entry'] or '')
if ARGV[2] == '' then
    redis.call('HDEL', index, field)
else
    letter['e'], letter['again'], letter['reason'] = ARGV[2], ARGV[3], 'its user was erased'
    local values = {}
    for name, value in pairs(letter) do
        values[#values + 1] = name
        values[#values + 1] = value
    end
    redis.call('HSET', index, field, redis.call('XADD', dead, '*', unpack(values)))
end
redis.call('XDEL', dead, ARGV[1])
return 1
"""


async def clean_letter(valkey: Valkey, letter_id: str) -> None:
    with unavailable_when_away():
        rows = await valkey.xrange(DEAD_STREAM, letter_id, letter_id)
        if not rows:
            return
        # The stubs know every protocol version and decoding; ours answers pairs of bytes.
        [(_, fields)] = cast("list[tuple[bytes, dict[bytes, bytes]]]", rows)
        data = _clean(fields.get(b"e", b""))
        again = _clean(fields.get(b"again", fields.get(b"e", b"")))
        await valkey.eval(REPLACE_SCRIPT, 2, DEAD_STREAM, INDEX, letter_id, data, again)


def _clean(data: bytes) -> bytes:
    """Return data without its user; nothing where nothing can be counted from it."""
    redelivery = unwrap_redelivery(data)
    if redelivery is None:
        return remove_user(data) or b""
    inner = remove_user(redelivery.data)
    if inner is None:
        return b""
    return encode_redelivery(Redelivery(redelivery.projection, redelivery.entry_id, inner))
