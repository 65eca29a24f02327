"""The sandbox used directly: programs that read the memory, and programs that are refused."""

from brain.scripts import ChunkStore
from rlm_mem import REPLSession, SandboxViolation

store = ChunkStore("brain/memory")
for month, level in (("January", "1.2"), ("February", "2.6"), ("March", "0.9")):
    store.create_chunk(f"In {month} the river stood at {level} metres.", chunk_type="fact", tags=["level"])

with REPLSession(store) as session:
    session.execute("""
import re
levels = {}
for chunk_id in list_chunks_by_tag("level"):
    content = read_chunk(chunk_id)["content"]
    month, level = re.search(r"In (\\w+) .* at ([0-9.]+)", content).groups()
    levels[month] = float(level)
""")
    print("levels:", session.execute("levels"))

    for attempt in ("import os", "open('/etc/passwd').read()", "().__class__.__bases__[0].__subclasses__()"):
        try:
            session.execute(attempt)
        except SandboxViolation as refusal:
            print("refused:", refusal)

    session.execute("FINAL(max(levels, key=lambda month: levels[month]))")
    print("highest in:", session.get_result())
store.close()
