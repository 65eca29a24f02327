"""Examples in the help of commands, of what their options alone do not tell."""

from __future__ import annotations

EXAMPLES: dict[str, tuple[str, ...]] = {
    "remember": (
        'remember "We chose PostgreSQL because of its row-level security." --tag database',
        'remember "Dana lives in Hamburg." --replaces a1b2c3d4',
        "remember --folder notes --watch",
        "remember --file minutes.txt --conversation planning --at 2026-03-02",
    ),
    "recall": (
        'recall "Why did we choose PostgreSQL?" --explain',
        'recall "Where does Dana live?" --as-of 2026-02-01',
        'recall "What did we decide about backups?" --llm anthropic:MODEL --usd 0.05',
    ),
    "search": (
        'search "row-level security" --type decision --since "last month"',
        "search ledger --speaker Priya --by segment",
    ),
    "reason": ('reason "Why did the ledger move to PostgreSQL?"',),
    "verify": ("verify answer.receipt.json --key signer.pub",),
    "query": ('query "deploy the ledger"', 'query "deploy the ledger" --hints'),
    "show": ("show a1b2c3d4",),
    "list": ("list --tag database --since 2026-03", "list --archived"),
    "delete": ("delete a1b2c3d4", "delete a1b2c3d4 --permanent"),
    "erase": (
        'erase --person "Ann Lee"',
        'erase --person "Ann Lee" --apply --report ann.json',
        "erase --verify ann.json",
    ),
    "undo": ("undo", "undo a1b2c3d4 --to 2"),
    "import": ("import conversations.json --dry-run", "import vault --trust untrusted"),
    "export": ("export vault", "export all.zip --history", "export --chunk a1b2c3d4"),
    "install": ("install claude-code", "install claude-code --hooks", "install cursor --project --print"),
    "serve": ("serve --open", "serve --no-dashboard --token-file token.txt"),
    "token create": ("token create ana --in team/ledger --allow read,write --expires 30d",),
    "hook context": ('hook context "How do we deploy?"',),
    "hook pause": ("hook pause 1h",),
    "project import": ("project import", "project import --watch"),
    "project move": (
        "project move a1b2c3d4 --to shared",
        "--namespace project/local/old-name project move --all --to project",
    ),
    "chunk update": ('chunk update a1b2c3d4 --content "The gate is red." --tag house',),
    "chunk supersede": ("chunk supersede a1b2c3d4 e5f6a7b8",),
    "chunk archive": ("chunk archive --conversation trip", "chunk archive --conversation trip --apply"),
    "link add": ("link add a1b2c3d4 e5f6a7b8 supports",),
    "store events": ("store events --operation erase --limit 10",),
    "store backup": ("store backup", "store backup brain.tar.gz --verify"),
    "store restore": ("--brain restored store restore brain.tar.gz",),
    "store copy": ("store copy postgresql://me@db.example/brain --all",),
    "trace record": ('trace record "deploy the ledger" --steps steps.json --success',),
    "trace use": ("trace use a1b2c3d4 --failure --error timeout",),
    "review approve": (
        "review approve 3f2a",
        "review approve 3f2a --keep a1b2c3d4",
    ),
    "trajectories export": ("trajectories export --to runs.jsonl --fields question,answer",),
    "persona hud": ("persona hud --watch",),
    "shards move": ("shards move team/ledger --to postgresql://me@db2.example/brain",),
}
"""Lines without ``rlm-mem`` in front, by the path of their command."""
