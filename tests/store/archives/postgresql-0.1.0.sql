CREATE TABLE rlm_mem.migrations (
    version integer NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
INSERT INTO rlm_mem.bodies VALUES
	(5397713154054526936, 3, '{
  "schema": "2.0",
  "id": "chunk-2026-11-23-1fd43975",
  "revision": 1,
  "content": "A sensor showed 7 degrees.",
  "tokens": 7,
  "type": "fact",
  "metadata": {
    "created_at": "2026-11-23T01:45:55.241526Z",
    "modified_at": "2026-11-23T01:45:55.241526Z",
    "accessed_at": "2026-11-23T01:45:55.241526Z",
    "access_count": 0,
    "confidence": 0.4,
    "conversation_id": null,
    "source": "tool",
    "content_hash": "768904191bd3b2c81fb01f861ae043ea06dd31d1444d1f53c8d2de17371540f9",
    "occurred_at": null,
    "valid_from": null,
    "valid_to": null,
    "superseded_by": null,
    "provenance": {},
    "extra": {}
  },
  "links": [],
  "tags": [],
  "namespace": "team/ledger"
}
', '\x010000000100000004000000000000001a000000000000008000080004000000040000000a0000000b0000000c0000000d000000'),
	(5397713154054526936, 4, '{
  "schema": "2.0",
  "id": "chunk-2026-11-23-edc9f03a",
  "revision": 1,
  "content": "Worked out by an agent.",
  "tokens": 6,
  "type": "pattern",
  "metadata": {
    "created_at": "2026-11-23T01:45:55.305761Z",
    "modified_at": "2026-11-23T01:45:55.305761Z",
    "accessed_at": "2026-11-23T01:45:55.305761Z",
    "access_count": 0,
    "confidence": 0.7,
    "conversation_id": null,
    "source": "agent",
    "content_hash": "9b26f5f16424e8360c8f3594fdec16d5fc1596bfb575c36b2410dce1e99e91ed",
    "occurred_at": null,
    "valid_from": null,
    "valid_to": null,
    "superseded_by": null,
    "provenance": {},
    "extra": {}
  },
  "links": [],
  "tags": [],
  "namespace": "team/ledger"
}
', '\x0100000001000000020000000000000017000000000000000000280002000000020000000e0000000f000000'),
	(5397713154054526936, 1, '{
  "schema": "2.0",
  "id": "chunk-2026-11-23-e220efd5",
  "revision": 2,
  "content": "Ann: The office is in Lyon.\nBob: Near the harbour 🌊.",
  "tokens": 16,
  "type": "note",
  "metadata": {
    "created_at": "2026-11-23T01:45:52.894581Z",
    "modified_at": "2026-11-23T01:45:55.395521Z",
    "accessed_at": "2026-11-23T01:45:52.894581Z",
    "access_count": 0,
    "confidence": 0.7,
    "conversation_id": "moving",
    "source": "interaction",
    "content_hash": "bbe0576e33a04f631f73de0d528321e4def0a2900b9e5e13acd7b780b4845954",
    "occurred_at": "2026-01-05T10:00:00.000000Z",
    "valid_from": null,
    "valid_to": null,
    "superseded_by": null,
    "provenance": {
      "span": [
        0,
        52
      ]
    },
    "extra": {}
  },
  "links": [
    {
      "target_id": "chunk-2026-11-23-1fd43975",
      "type": "supports",
      "strength": 0.8,
      "created_at": "2026-11-23T01:45:55.395373Z",
      "reasoning": null
    }
  ],
  "tags": [
    "office"
  ],
  "namespace": "team/ledger"
}
', '\x010000000200000004000000000000001b000000040000004840280002000000020000001c000000340000000700000000402000020000000200000001000000020000000400000005000000'),
	(5397713154054526936, 2, '{
  "schema": "2.0",
  "id": "chunk-2026-11-23-7a5cb2b1",
  "revision": 2,
  "content": "A page about the walnuts and orchids of the garden.",
  "tokens": 11,
  "type": "note",
  "metadata": {
    "created_at": "2026-11-23T01:45:55.154206Z",
    "modified_at": "2026-11-23T01:45:55.468437Z",
    "accessed_at": "2026-11-23T01:45:55.154206Z",
    "access_count": 0,
    "confidence": 0.7,
    "conversation_id": "moving",
    "source": "import",
    "content_hash": "982dfcac3538a31acce96003f99c483a99a90f4679af2cc257718d7ab4287b82",
    "occurred_at": null,
    "valid_from": null,
    "valid_to": null,
    "superseded_by": null,
    "provenance": {
      "span": [
        0,
        39
      ]
    },
    "extra": {}
  },
  "links": [
    {
      "target_id": "chunk-2026-11-23-e220efd5",
      "type": "context_of",
      "strength": 1.0,
      "created_at": "2026-11-23T01:45:55.154120Z",
      "reasoning": null
    },
    {
      "target_id": "chunk-2026-11-23-e220efd5",
      "type": "related_to",
      "strength": 0.5,
      "created_at": "2026-11-23T01:45:55.154120Z",
      "reasoning": null
    }
  ],
  "tags": [
    "office",
    "garden"
  ],
  "namespace": "team/ledger"
}
', '\x01000000010000000400000000000000330000000000000000000800040000000400000007000000080000001000000009000000'),
	(5397713154054526936, 5, '{
  "schema": "2.0",
  "id": "chunk-2026-11-23-08b0bef7",
  "revision": 1,
  "content": "The former number of the bank.",
  "tokens": 7,
  "type": "note",
  "metadata": {
    "created_at": "2026-11-23T01:45:55.544752Z",
    "modified_at": "2026-11-23T01:45:55.544752Z",
    "accessed_at": "2026-11-23T01:45:55.544752Z",
    "access_count": 0,
    "confidence": 0.7,
    "conversation_id": null,
    "source": "interaction",
    "content_hash": "c4843d2b3bdc2feab411beebd2edb0f61bf08f790eb5f7dbbe40fc3af15c333b",
    "occurred_at": null,
    "valid_from": null,
    "valid_to": null,
    "superseded_by": null,
    "provenance": {
      "span": [
        0,
        30
      ]
    },
    "extra": {}
  },
  "links": [
    {
      "target_id": "chunk-2026-11-23-edc9f03a",
      "type": "follows",
      "strength": 0.9992,
      "created_at": "2026-11-23T01:45:55.544661Z",
      "reasoning": null
    },
    {
      "target_id": "chunk-2026-11-23-1fd43975",
      "type": "follows",
      "strength": 0.8991,
      "created_at": "2026-11-23T01:45:55.544661Z",
      "reasoning": null
    },
    {
      "target_id": "chunk-2026-11-23-7a5cb2b1",
      "type": "follows",
      "strength": 0.4994,
      "created_at": "2026-11-23T01:45:55.544661Z",
      "reasoning": null
    }
  ],
  "tags": [],
  "namespace": "team/ledger"
}
', '\x010000000100000003000000000000001e00000000000000000028000300000003000000110000001200000013000000');
INSERT INTO rlm_mem.chunks VALUES
	(5397713154054526936, 3, 'chunk-2026-11-23-1fd43975', NULL, 'fact', 0, 1795398355.241526, '2026-11-23T01:45:55.241526Z', '2026-11-23T01:45:55.241526Z', NULL, NULL, NULL, NULL, 0.4, 7, 1, 'tool', '768904191bd3b2c81fb01f861ae043ea06dd31d1444d1f53c8d2de17371540f9', '51f44cf20b278a4384a7eb7f259c9cccb715bce77e947e7081c30aaf3a556bf7', 702, 4, 1),
	(5397713154054526936, 4, 'chunk-2026-11-23-edc9f03a', NULL, 'pattern', 0, 1795398355.305761, '2026-11-23T01:45:55.305761Z', '2026-11-23T01:45:55.305761Z', NULL, NULL, NULL, NULL, 0.7, 6, 1, 'agent', '9b26f5f16424e8360c8f3594fdec16d5fc1596bfb575c36b2410dce1e99e91ed', 'f2c2eeece482ff88ef2639ac38cb6f3aee35cce9dff4e47fccdbfc133df8af83', 703, 2, 1),
	(5397713154054526936, 1, 'chunk-2026-11-23-e220efd5', 1, 'note', 0, 1767607200, '2026-11-23T01:45:52.894581Z', '2026-11-23T01:45:55.395521Z', '2026-01-05T10:00:00.000000Z', NULL, NULL, NULL, 0.7, 16, 2, 'interaction', 'bbe0576e33a04f631f73de0d528321e4def0a2900b9e5e13acd7b780b4845954', 'a61cd404490f234506e58d52d6623d89af919a992e1d96084170762edf235bbe', 1023, 4, 2),
	(5397713154054526936, 2, 'chunk-2026-11-23-7a5cb2b1', 1, 'note', 0, 1795398355.154206, '2026-11-23T01:45:55.154206Z', '2026-11-23T01:45:55.468437Z', NULL, NULL, NULL, NULL, 0.7, 11, 2, 'import', '982dfcac3538a31acce96003f99c483a99a90f4679af2cc257718d7ab4287b82', '35442fd5d7aaa31c8e405224a77d4a98f8f80cbb92d69b698f4556cbc01873f3', 1191, 4, 1),
	(5397713154054526936, 5, 'chunk-2026-11-23-08b0bef7', NULL, 'note', 1, 1795398355.544752, '2026-11-23T01:45:55.544752Z', '2026-11-23T01:45:55.544752Z', NULL, NULL, NULL, NULL, 0.7, 7, 1, 'interaction', 'c4843d2b3bdc2feab411beebd2edb0f61bf08f790eb5f7dbbe40fc3af15c333b', 'aeb7220762b3af499d6f8e9d4b510b826b63c5d612fb293e35e80b62a8a438a6', 1327, 3, 1);
INSERT INTO rlm_mem.conversation_terms VALUES
	(5397713154054526936, 1, 0, '\x010000000100000001000000020000000100000001000000030000000100000001000000040000000100000001000000050000000100000001000000060000000100000001000000070000000100000001000000080000000100000001000000090000000100000001000000100000000100000001000000');
INSERT INTO rlm_mem.conversations VALUES
	(5397713154054526936, 1, 'moving', 2, 8, 1795398355.154206);
INSERT INTO rlm_mem.event_chunks VALUES
	(5397713154054526936, 'chunk-2026-11-23-e220efd5', 1),
	(5397713154054526936, 'chunk-2026-11-23-7a5cb2b1', 2),
	(5397713154054526936, 'chunk-2026-11-23-1fd43975', 3),
	(5397713154054526936, 'chunk-2026-11-23-edc9f03a', 4),
	(5397713154054526936, 'chunk-2026-11-23-e220efd5', 5),
	(5397713154054526936, 'chunk-2026-11-23-7a5cb2b1', 6),
	(5397713154054526936, 'chunk-2026-11-23-08b0bef7', 7),
	(5397713154054526936, 'chunk-2026-11-23-08b0bef7', 8);
INSERT INTO rlm_mem.events VALUES
	(5397713154054526936, 1, '2026-11-23T01:45:55.002943Z', 'create', '{"ts":"2026-11-23T01:45:55.002943Z","actor":null,"op":"create","ns":"team/ledger","chunk_id":"chunk-2026-11-23-e220efd5","revision":1,"before":null,"after":"bbe0576e33a04f631f73de0d528321e4def0a2900b9e5e13acd7b780b4845954"}'),
	(5397713154054526936, 2, '2026-11-23T01:45:55.193271Z', 'create', '{"ts":"2026-11-23T01:45:55.193271Z","actor":null,"op":"create","ns":"team/ledger","chunk_id":"chunk-2026-11-23-7a5cb2b1","revision":1,"before":null,"after":"194479ce1fbe596034fd4a59327f3c1009677097e7922a6ce8b17b8554caa824"}'),
	(5397713154054526936, 3, '2026-11-23T01:45:55.276245Z', 'create', '{"ts":"2026-11-23T01:45:55.276245Z","actor":null,"op":"create","ns":"team/ledger","chunk_id":"chunk-2026-11-23-1fd43975","revision":1,"before":null,"after":"768904191bd3b2c81fb01f861ae043ea06dd31d1444d1f53c8d2de17371540f9"}'),
	(5397713154054526936, 4, '2026-11-23T01:45:55.314168Z', 'create', '{"ts":"2026-11-23T01:45:55.314168Z","actor":null,"op":"create","ns":"team/ledger","chunk_id":"chunk-2026-11-23-edc9f03a","revision":1,"before":null,"after":"9b26f5f16424e8360c8f3594fdec16d5fc1596bfb575c36b2410dce1e99e91ed"}'),
	(5397713154054526936, 5, '2026-11-23T01:45:55.407824Z', 'link', '{"ts":"2026-11-23T01:45:55.407824Z","actor":null,"op":"link","ns":"team/ledger","chunk_id":"chunk-2026-11-23-e220efd5","revision":2,"before":"bbe0576e33a04f631f73de0d528321e4def0a2900b9e5e13acd7b780b4845954","after":"bbe0576e33a04f631f73de0d528321e4def0a2900b9e5e13acd7b780b4845954","target":"chunk-2026-11-23-1fd43975","type":"supports"}'),
	(5397713154054526936, 6, '2026-11-23T01:45:55.476341Z', 'update', '{"ts":"2026-11-23T01:45:55.476341Z","actor":null,"op":"update","ns":"team/ledger","chunk_id":"chunk-2026-11-23-7a5cb2b1","revision":2,"before":"194479ce1fbe596034fd4a59327f3c1009677097e7922a6ce8b17b8554caa824","after":"982dfcac3538a31acce96003f99c483a99a90f4679af2cc257718d7ab4287b82"}'),
	(5397713154054526936, 7, '2026-11-23T01:45:55.565919Z', 'create', '{"ts":"2026-11-23T01:45:55.565919Z","actor":null,"op":"create","ns":"team/ledger","chunk_id":"chunk-2026-11-23-08b0bef7","revision":1,"before":null,"after":"c4843d2b3bdc2feab411beebd2edb0f61bf08f790eb5f7dbbe40fc3af15c333b"}'),
	(5397713154054526936, 8, '2026-11-23T01:45:55.655126Z', 'delete', '{"ts":"2026-11-23T01:45:55.655126Z","actor":null,"op":"delete","ns":"team/ledger","chunk_id":"chunk-2026-11-23-08b0bef7","revision":1,"before":null,"after":"c4843d2b3bdc2feab411beebd2edb0f61bf08f790eb5f7dbbe40fc3af15c333b"}');
INSERT INTO rlm_mem.links VALUES
	(5397713154054526936, 1, 0, 'chunk-2026-11-23-1fd43975', 'supports', 0.8, '2026-11-23T01:45:55.395373Z', NULL),
	(5397713154054526936, 2, 0, 'chunk-2026-11-23-e220efd5', 'context_of', 1, '2026-11-23T01:45:55.154120Z', NULL),
	(5397713154054526936, 2, 1, 'chunk-2026-11-23-e220efd5', 'related_to', 0.5, '2026-11-23T01:45:55.154120Z', NULL);
INSERT INTO rlm_mem.migrations VALUES
	(1, '2026-11-23 01:45:41.600112+00');
INSERT INTO rlm_mem.namespaces VALUES
	(5397713154054526936, 'team/ledger', 'here', NULL, 6, 20, 2, '1:english', 8, 5, 14, 1, 2);
INSERT INTO rlm_mem.postings VALUES
	(5397713154054526936, 1, 0, '\x010000000400000001010000'),
	(5397713154054526936, 2, 0, '\x010000000400000001010000'),
	(5397713154054526936, 3, 0, '\x010000000400000001010000'),
	(5397713154054526936, 4, 0, '\x010000000400000001010000'),
	(5397713154054526936, 5, 0, '\x010000000400000001010000'),
	(5397713154054526936, 6, 0, '\x010000000400000001010000'),
	(5397713154054526936, 10, 0, '\x030000000400000001010000'),
	(5397713154054526936, 11, 0, '\x030000000400000001010000'),
	(5397713154054526936, 12, 0, '\x030000000400000001010000'),
	(5397713154054526936, 13, 0, '\x030000000400000001010000'),
	(5397713154054526936, 14, 0, '\x040000000200000001010000'),
	(5397713154054526936, 15, 0, '\x040000000200000001010000'),
	(5397713154054526936, 7, 0, '\x020000000400000001010000'),
	(5397713154054526936, 8, 0, '\x020000000400000001010000'),
	(5397713154054526936, 9, 0, '\x020000000400000001010000'),
	(5397713154054526936, 16, 0, '\x020000000400000001010000');
INSERT INTO rlm_mem.reads VALUES
	(5397713154054526936, 2, 0, '2026-11-23T01:45:55.154206Z'),
	(5397713154054526936, 1, 2, '2026-11-23T01:45:55.712991Z');
INSERT INTO rlm_mem.tag_totals VALUES
	(5397713154054526936, 'office', 2),
	(5397713154054526936, 'garden', 1);
INSERT INTO rlm_mem.tags VALUES
	(5397713154054526936, 'office', 1767607200, 1),
	(5397713154054526936, 'office', 1795398355.154206, 2),
	(5397713154054526936, 'garden', 1795398355.154206, 2);
INSERT INTO rlm_mem.terms VALUES
	(5397713154054526936, 'offic', 1, 1, 1, 1),
	(5397713154054526936, 'lyon', 2, 1, 1, 1),
	(5397713154054526936, 'author:Ann', 3, 1, 1, 1),
	(5397713154054526936, 'near', 4, 1, 1, 1),
	(5397713154054526936, 'harbour', 5, 1, 1, 1),
	(5397713154054526936, 'author:Bob', 6, 1, 1, 1),
	(5397713154054526936, 'page', 7, 1, 1, 1),
	(5397713154054526936, 'walnut', 8, 1, 1, 1),
	(5397713154054526936, 'garden', 9, 1, 1, 1),
	(5397713154054526936, 'sensor', 10, 1, 1, 1),
	(5397713154054526936, 'show', 11, 1, 1, 1),
	(5397713154054526936, '7', 12, 1, 1, 1),
	(5397713154054526936, 'degre', 13, 1, 1, 1),
	(5397713154054526936, 'work', 14, 1, 1, 1),
	(5397713154054526936, 'agent', 15, 1, 1, 1),
	(5397713154054526936, 'orchid', 16, 1, 1, 1),
	(5397713154054526936, 'former', 17, 0, 0, 0),
	(5397713154054526936, 'number', 18, 0, 0, 0),
	(5397713154054526936, 'bank', 19, 0, 0, 0);
INSERT INTO rlm_mem.totals VALUES
	(5397713154054526936, 0, 'fact', 1, 7, 702),
	(5397713154054526936, 0, 'pattern', 1, 6, 703),
	(5397713154054526936, 0, 'note', 2, 27, 2214),
	(5397713154054526936, 1, 'note', 1, 7, 1327);
INSERT INTO rlm_mem.versions VALUES
	(5397713154054526936, 'chunk-2026-11-23-e220efd5', 1, '{
  "schema": "2.0",
  "id": "chunk-2026-11-23-e220efd5",
  "revision": 1,
  "content": "Ann: The office is in Lyon.\nBob: Near the harbour 🌊.",
  "tokens": 16,
  "type": "note",
  "metadata": {
    "created_at": "2026-11-23T01:45:52.894581Z",
    "modified_at": "2026-11-23T01:45:52.894581Z",
    "accessed_at": "2026-11-23T01:45:52.894581Z",
    "access_count": 0,
    "confidence": 0.7,
    "conversation_id": "moving",
    "source": "interaction",
    "content_hash": "bbe0576e33a04f631f73de0d528321e4def0a2900b9e5e13acd7b780b4845954",
    "occurred_at": "2026-01-05T10:00:00.000000Z",
    "valid_from": null,
    "valid_to": null,
    "superseded_by": null,
    "provenance": {
      "span": [
        0,
        52
      ]
    },
    "extra": {}
  },
  "links": [],
  "tags": [
    "office"
  ],
  "namespace": "team/ledger"
}
'),
	(5397713154054526936, 'chunk-2026-11-23-7a5cb2b1', 1, '{
  "schema": "2.0",
  "id": "chunk-2026-11-23-7a5cb2b1",
  "revision": 1,
  "content": "A page about the walnuts of the garden.",
  "tokens": 9,
  "type": "note",
  "metadata": {
    "created_at": "2026-11-23T01:45:55.154206Z",
    "modified_at": "2026-11-23T01:45:55.154206Z",
    "accessed_at": "2026-11-23T01:45:55.154206Z",
    "access_count": 0,
    "confidence": 0.7,
    "conversation_id": "moving",
    "source": "import",
    "content_hash": "194479ce1fbe596034fd4a59327f3c1009677097e7922a6ce8b17b8554caa824",
    "occurred_at": null,
    "valid_from": null,
    "valid_to": null,
    "superseded_by": null,
    "provenance": {
      "span": [
        0,
        39
      ]
    },
    "extra": {}
  },
  "links": [
    {
      "target_id": "chunk-2026-11-23-e220efd5",
      "type": "context_of",
      "strength": 1.0,
      "created_at": "2026-11-23T01:45:55.154120Z",
      "reasoning": null
    },
    {
      "target_id": "chunk-2026-11-23-e220efd5",
      "type": "related_to",
      "strength": 0.5,
      "created_at": "2026-11-23T01:45:55.154120Z",
      "reasoning": null
    }
  ],
  "tags": [
    "office",
    "garden"
  ],
  "namespace": "team/ledger"
}
');
SELECT pg_catalog.setval('rlm_mem.event_numbers', 8, true);
