"""What `rlm-mem --help` shows, and which module holds a command; written by `python tools/overview.py`."""

# ruff: noqa: E501 - the words of the commands, as they stand there
from __future__ import annotations

SUMMARY = "Long-term memory for LLM agents: plain files, links, and answers found by programs."

OPTIONS: tuple[tuple[str, str, str], ...] = (
    ("--brain", "PATH", "The brain folder or DSN, for whichever command follows."),
    ("--namespace", "NAME", "Whose memory, for whichever command follows."),
    ("--log-level", "LEVEL", "Log lines on stderr: debug, info, warning, error."),
    ("--log-format", "FORM", "Log lines as text, or json: one object a line."),
    ("--version", "", "Print the version."),
    ("--install-completion", "", "Install completion for the current shell."),
    (
        "--show-completion",
        "",
        "Show completion for the current shell, to copy it or customize the installation.",
    ),
    ("--help, -h", "", "Show this message and exit."),
)

PANELS: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = (
    (
        "Remember and recall",
        (
            ("remember", "Remember a text: it is split into chunks, and linked with what is there."),
            ("recall", "Answer a question from memory: programs search and read until they have the answer."),
            (
                "reason",
                "Draw a conclusion from several memories, following their links; shows the path as a tree.",
            ),
            (
                "verify",
                "Verify a receipt by running its programs again: what holds, what has changed since, what was altered.",
            ),
            (
                "demo",
                "Show what this does: remember a team's notes of half a year, and answer questions about them.",
            ),
        ),
    ),
    (
        "Look",
        (
            ("search", "Search by words, names and dates; no model is involved."),
            ("show", "Show chunks whole: content, metadata and links."),
            ("list", "List chunks."),
            ("tags", "List the tags, the commonest first."),
            ("conversations", "List the conversations."),
            ("namespaces", "List the namespaces of this brain."),
            ("links", "Show what a chunk is linked with, and what links to it."),
            ("history", "Show the versions of a chunk."),
            ("stats", "Show how much is remembered."),
        ),
    ),
    (
        "Change",
        (
            ("link", "Link two chunks: rlm-mem link FROM TO supports."),
            ("unlink", "Remove the links from one chunk to another."),
            ("update", "Change a chunk; its former version is kept."),
            ("edit", "Change the content of a chunk in your editor (VISUAL or EDITOR)."),
            ("delete", "Delete chunks; rlm-mem restore brings them back, unless --permanent."),
            (
                "restore",
                "Bring deleted chunks back (rlm-mem list --archived names them), or a whole memory from a backup.",
            ),
            ("undo", "Undo the last change of a chunk; rlm-mem history shows its versions."),
        ),
    ),
    (
        "Move in and out",
        (
            (
                "export",
                "Export memories: a folder of Markdown that opens in Obsidian, JSON lines, or one zip archive.",
            ),
            (
                "import",
                "Import memories, chats and notes: exports of this and other tools, detected by themselves, each thing once.",
            ),
        ),
    ),
    (
        "Continuum",
        (
            ("query", "Find proven work for a goal across the tiers."),
            (
                "consolidate",
                "Promote what has proved itself. Safe to run from cron or a hook, and to repeat.",
            ),
            (
                "prune",
                "Apply retention: archive, downgrade, flag for review. A report first; --apply does it.",
            ),
            ("review", "The queue before the core: look at cases and decide them."),
            ("trace", "Logs and traces of work: record, use, list, undo."),
            ("state", "The working state of the present execution."),
        ),
    ),
    (
        "Records",
        (
            ("costs", "Show what recalls cost, by day, model and operation."),
            ("events", "Show the audit log: when, who, what, and which chunk."),
            ("trajectories", "The recorded steps of recalls: list, show, replay, export."),
        ),
    ),
    (
        "Care",
        (
            (
                "init",
                "Make a memory: the folder, its settings, personalities, sliders and gauges. What is there already stays.",
            ),
            (
                "check",
                "Check files, links and index against each other, changing nothing; ends with 1 on findings.",
            ),
            ("repair", "Mend what check finds; without --apply it says what it would do."),
            ("sync", "Take in what was edited by hand, by git or by another program."),
            (
                "checkpoint",
                "Write into the files what only the index knows: access counts, and the JSON views.",
            ),
            (
                "backup",
                "Write everything into one compressed file, as it is at one moment, while others go on writing.",
            ),
            (
                "vacuum",
                "Give back the room that the index takes without need; safe while others use the memory.",
            ),
            ("index", "The index: derived from the files, rebuildable from them."),
            ("config", "The settings."),
        ),
    ),
    (
        "Many machines",
        (
            (
                "copy",
                "Copy a memory between folders and databases, whole, and compare the two; again carries what is missing.",
            ),
            (
                "shards",
                "Namespaces over several PostgreSQL databases; --brain is the DSN that programs open.",
            ),
        ),
    ),
    (
        "Persona",
        (
            ("hud", "Show the live figures: sliders, memory, system, store, tiers, cost."),
            ("persona", "The personality: modes and sliders."),
        ),
    ),
    (
        "Agents",
        (
            ("mcp", "Serve the memory to agents over MCP; clients start this themselves (rlm-mem install)."),
            (
                "serve",
                "Serve the memory on this machine: MCP, an HTTP interface with an OpenAPI document, and a dashboard.",
            ),
            (
                "install",
                "Bring the memory into an MCP client: writes its configuration, keeping a copy of what was there.",
            ),
            (
                "doctor",
                "Say what is right and what is wrong with the installation and the memory; ends with 1 when something is.",
            ),
            ("hook", "Commands for the hooks of coding agents."),
        ),
    ),
)

MODULES: dict[str, str] = {
    "remember": "remember",
    "recall": "ask",
    "reason": "ask",
    "verify": "receipt",
    "search": "read",
    "show": "read",
    "list": "read",
    "tags": "read",
    "conversations": "read",
    "namespaces": "read",
    "links": "read",
    "history": "read",
    "stats": "read",
    "link": "edit",
    "unlink": "edit",
    "update": "edit",
    "edit": "edit",
    "delete": "edit",
    "restore": "edit",
    "undo": "edit",
    "export": "interchange",
    "import": "interchange",
    "query": "continuum",
    "consolidate": "continuum",
    "prune": "continuum",
    "review": "review",
    "trace": "traces",
    "state": "traces",
    "costs": "records",
    "events": "records",
    "trajectories": "records",
    "init": "maintenance",
    "check": "maintenance",
    "repair": "maintenance",
    "sync": "maintenance",
    "checkpoint": "maintenance",
    "index": "maintenance",
    "backup": "backup",
    "vacuum": "backup",
    "copy": "machines",
    "shards": "machines",
    "hud": "persona",
    "persona": "persona",
    "config": "settings",
    "mcp": "server",
    "serve": "server",
    "install": "server",
    "doctor": "server",
    "hook": "server",
    "demo": "demo",
}
