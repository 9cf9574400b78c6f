import { maxCharacters, readParameters, reply, visibleText } from "@portico/core/contract";
import * as v from "valibot";
import { agentErrors } from "./errors.ts";
import { MEMORY_CHARACTERS_MAXIMUM, MEMORY_NAME_CHARACTERS } from "./limits.ts";

/** Words for the reader of a fault. */
export const MEMORY_NAME_RULE = `a name of 1-${MEMORY_NAME_CHARACTERS} visible characters that begins with a letter or digit and has no / and no \\`;

/** The name of a document of a memory. Equal names of different code points are one name. */
export const memoryName = v.pipe(
  v.string(),
  v.normalize("NFC"),
  maxCharacters(MEMORY_NAME_CHARACTERS),
  v.regex(/^[\p{L}\p{N}][^/\\\p{Cc}]*$/u, MEMORY_NAME_RULE),
  v.check((name) => name.isWellFormed() && visibleText(name) === name && name.trimEnd() === name, MEMORY_NAME_RULE),
);

/** Control characters other than a tab and the ends of lines. */
// oxlint-disable-next-line no-control-regex
const CONTROLS = /[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]/;

/** The text of a document. An agent's own bound may be smaller. */
export const memoryText = v.pipe(
  v.string(),
  maxCharacters(MEMORY_CHARACTERS_MAXIMUM),
  v.check((text) => text.isWellFormed() && !CONTROLS.test(text), "well-formed text without control characters"),
  v.check((text) => /\S/.test(text), "a text that is not blank"),
);

const text = v.string();
const agentId = v.pipe(text, v.regex(/^[A-Za-z0-9_-]{1,64}$/, "an agent's id"));
const ofAgent = v.strictObject({ id: agentId });
const ofDocument = v.strictObject({ id: agentId, name: memoryName });

const about = {
  name: text,
  /** Names this state of the document, for `If-Match`. */
  etag: text,
  /** ISO 8601. */
  updatedAt: text,
  writtenBy: v.picklist(["agent", "user"]),
  characters: v.number(),
};
const document = v.object({ ...about, text });

const { unauthorized, user_required, invalid_request, memory_not_found, memory_changed } = agentErrors;
const ofUser = { unauthorized, user_required };

/** What an agent remembers of the caller: extensions of the specification. */
export const memoryRoutes = {
  memories: {
    method: "GET",
    path: "/api/agent-memories",
    summary: "List the agents that remember something of the caller, also agents that do not exist any more",
    query: readParameters({}),
    success: reply.json(v.object({ memories: v.array(v.object({ agentId: text, documents: v.number(), updatedAt: text })) })),
    errors: ofUser,
  },
  memory: {
    method: "GET",
    path: "/api/agents/:id/memory",
    summary: "List what an agent remembers of the caller",
    params: ofAgent,
    query: readParameters({}),
    success: reply.json(
      v.object({
        agentId: text,
        /** Whether the agent exists and its agent.json switches its memory on. Without it, documents can only be read and erased. */
        isOn: v.boolean(),
        /** How many documents it may have, and how many characters each. Absent if it is off. */
        maxDocuments: v.optional(v.number()),
        maxCharacters: v.optional(v.number()),
        /** In the order of their names. */
        documents: v.array(v.object(about)),
      }),
    ),
    errors: { ...ofUser, invalid_request },
  },
  readMemory: {
    method: "GET",
    path: "/api/agents/:id/memory/:name",
    summary: "Read a document of what an agent remembers of the caller",
    params: ofDocument,
    query: readParameters({}),
    success: reply.json(document),
    errors: { ...ofUser, invalid_request, memory_not_found },
  },
  writeMemory: {
    method: "PUT",
    path: "/api/agents/:id/memory/:name",
    summary: "Write a document of what an agent remembers of the caller, with If-Match or If-None-Match: *",
    params: ofDocument,
    body: v.strictObject({ text: memoryText }),
    success: reply.json(v.object({ ...document.entries, /** Whether it is new. */ created: v.boolean() })),
    errors: {
      ...ofUser,
      invalid_request,
      memory_off: agentErrors.memory_off,
      memory_full: agentErrors.memory_full,
      memory_changed,
      memory_too_long: agentErrors.memory_too_long,
      precondition_required: agentErrors.precondition_required,
    },
  },
  eraseMemoryDocument: {
    method: "DELETE",
    path: "/api/agents/:id/memory/:name",
    summary: "Erase a document of what an agent remembers of the caller, in any state or with If-Match",
    params: ofDocument,
    success: reply.empty(),
    errors: { ...ofUser, invalid_request, memory_not_found, memory_changed },
  },
  eraseMemory: {
    method: "DELETE",
    path: "/api/agents/:id/memory",
    summary: "Erase all that an agent remembers of the caller",
    params: ofAgent,
    success: reply.json(v.object({ agentId: text, /** How many documents were erased. */ erased: v.number() })),
    errors: { ...ofUser, invalid_request },
  },
} as const;
