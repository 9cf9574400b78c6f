import {
  auditActor,
  auditWriter,
  checkConditions,
  checkReplacement,
  hasAtMost,
  type ports,
  type RequestHead,
  ServiceError,
} from "@portico/core";
import { agentErrors } from "../errors.ts";
import { createMemories, type Memories, memoryBounds, type MemoryDocument, type MemoryOwner } from "../memory/memories.ts";
import type { ConversationHandlers, ConversationServices } from "./conversation-services.ts";

type MemoryHandlers = Pick<
  ConversationHandlers,
  "memories" | "memory" | "readMemory" | "writeMemory" | "eraseMemoryDocument" | "eraseMemory"
>;

/** The calls about what agents remember of the caller. An owner, too, sees and changes only what agents remember of the owner. */
export function memoryCalls({ records, agents, clock, audit: given }: ConversationServices): MemoryHandlers {
  const audit = auditWriter(given, records);
  let opened: Memories | undefined;
  // Not opened before it is used: most instances have no agents with a memory.
  const memories = () => (opened ??= createMemories(records));

  const find = async (owner: MemoryOwner, name: string) => (await memories().read(owner)).find((each) => each.name === name);
  /** Undefined if turns of the agent have no memory. */
  const boundsOf = async (agentId: string) => {
    const memory = (await agents.find(agentId))?.definition.memory;
    return memory && memoryBounds(memory);
  };
  /** Commits the writes of a change with its entry of the audit. */
  const committing = (action: string, agentId: string, who: ports.Caller, head: RequestHead) => {
    const fact = { action: `agent-memory.${action}`, object: agentId, who: auditActor(who, head) };
    return (writes: readonly ports.Write[]) => audit.record(fact, writes);
  };

  return {
    async memories({ who }) {
      const found = [];
      for await (const page of memories().ofUser(userOf(who)))
        for (const { agentId, documents, updatedAt } of page) found.push({ agentId, documents: documents.length, updatedAt });
      return { memories: found.toSorted((one, other) => (one.agentId < other.agentId ? -1 : 1)) };
    },
    async memory({ params: { id: agentId }, who }) {
      const owner = { userId: userOf(who), agentId };
      const [documents, bounds] = await Promise.all([memories().read(owner), boundsOf(agentId)]);
      return { agentId, isOn: bounds !== undefined, ...bounds, documents: documents.map(toAbout) };
    },
    async readMemory({ params: { id: agentId, name }, who }) {
      const document = await find({ userId: userOf(who), agentId }, name);
      if (!document) throw agentErrors.memory_not_found();
      return toShown(document);
    },
    async writeMemory({ params: { id: agentId, name }, body: { text }, who, head }) {
      const owner = { userId: userOf(who), agentId };
      const bounds = await boundsOf(agentId);
      if (!bounds) throw agentErrors.memory_off();
      const { maxDocuments, maxCharacters } = bounds;
      if (!hasAtMost(maxCharacters, text))
        throw agentErrors.memory_too_long(`The agent remembers documents of at most ${maxCharacters} characters`);
      const before = await find(owner, name);
      const outcome = checkReplacement(head, before && etagOf(before));
      if (outcome === "precondition_required") throw agentErrors.precondition_required();
      if (outcome === "precondition_failed") throw changed(before);
      const change = await memories().write(
        owner,
        { name, text, writtenBy: "user", expected: before?.version ?? "absent", maxDocuments },
        clock.now(),
        committing(before ? "replace" : "create", agentId, who, head),
      );
      if (change.status === "full") throw agentErrors.memory_full();
      if (change.status === "changed") throw changed(change.document);
      return { ...toShown(change.document), created: before === undefined };
    },
    async eraseMemoryDocument({ params: { id: agentId, name }, who, head }) {
      const owner = { userId: userOf(who), agentId };
      const before = await find(owner, name);
      if (!before) throw agentErrors.memory_not_found();
      if (checkConditions(head, { etag: etagOf(before) }) !== "proceed") throw changed(before);
      const expected = head.header("if-match") === undefined ? undefined : before.version;
      const change = await memories().erase(owner, name, expected, clock.now(), committing("erase", agentId, who, head));
      if (change.status === "missing") throw agentErrors.memory_not_found();
      if (change.status === "changed") throw changed(change.document);
    },
    async eraseMemory({ params: { id: agentId }, who, head }) {
      const owner = { userId: userOf(who), agentId };
      return { agentId, erased: await memories().eraseAll(owner, committing("erase-all", agentId, who, head)) };
    },
  };
}

function userOf({ userId }: Pick<ports.Caller, "userId">): string {
  if (userId === undefined) throw agentErrors.user_required("This token has no user of whom agents could remember something");
  return userId;
}

function toAbout(document: MemoryDocument) {
  const { name, updatedAt, writtenBy, text } = document;
  return { name, etag: etagOf(document), updatedAt, writtenBy, characters: [...text].length };
}

function toShown(document: MemoryDocument) {
  return { ...toAbout(document), text: document.text };
}

/** A strong entity tag: it changes with every character. */
function etagOf({ version }: MemoryDocument): string {
  return `"${version}"`;
}

function changed(document: MemoryDocument | undefined): ServiceError {
  return new ServiceError(agentErrors.memory_changed, document && { headers: { etag: etagOf(document) } });
}
