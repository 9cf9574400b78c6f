import { hash } from "node:crypto";
import { type ports, readPages, writeAgain } from "@portico/core";
import { undefinedAtConflict } from "@portico/core/kit";
import { digestOf } from "../approvals/digest.ts";
import { MEMORY_CHARACTERS, MEMORY_DOCUMENTS } from "../limits.ts";

/** One document of a memory. */
export interface MemoryDocument {
  readonly name: string;
  readonly text: string;
  /** A digest of the text: it names the state that a change replaces. */
  readonly version: string;
  /** ISO 8601. */
  readonly updatedAt: string;
  readonly writtenBy: "agent" | "user";
}

/** The user of whom an agent remembers something, and the agent. */
export interface MemoryOwner {
  readonly userId: string;
  readonly agentId: string;
}

/** What an agent remembers of a user. One record has all documents, so that bounds hold and changes are compared in one write. */
interface StoredMemory extends MemoryOwner {
  /** ISO 8601. */
  readonly updatedAt: string;
  /** In the order of their names. */
  readonly documents: readonly MemoryDocument[];
}

/** A document as it is to be. */
export interface WrittenDocument extends Pick<MemoryDocument, "name" | "text" | "writtenBy"> {
  /** The version that it replaces. */
  readonly expected: string | "absent";
  /** Most documents of the memory. */
  readonly maxDocuments: number;
}

/** The outcome of a change. `changed`: the document is not in the expected version, but as `document` says. */
export type MemoryChange<Refused extends string> =
  | { readonly status: "done"; readonly document: MemoryDocument }
  | { readonly status: "changed"; readonly document: MemoryDocument | undefined }
  | { readonly status: Refused };

/** Commits the writes of a change, perhaps together with others. Throws RecordConflict. */
type Commit = (writes: readonly ports.Write[]) => Promise<void>;

/** The bounds of an agent's memory. */
export function memoryBounds({ maxDocuments = MEMORY_DOCUMENTS, maxCharacters = MEMORY_CHARACTERS }: ports.AgentMemory) {
  return { maxDocuments, maxCharacters };
}

export type Memories = ReturnType<typeof createMemories>;

/** A memory may have 1,000,000 characters: few fit into one page. */
const PAGE = 10;

/** What agents remember of users across conversations. Functions throw RecordsUnavailable. */
export function createMemories(records: ports.Records) {
  const collection = records.collection<StoredMemory>({
    name: "agent-memories",
    indexes: { byUser: ["userId"], byChange: ["updatedAt"] },
  });
  const batch: Commit = (writes) => records.batch(writes);

  /** Replaces the documents that were read. Those of an empty memory are removed. */
  const replacing = (
    { userId, agentId }: MemoryOwner,
    before: ports.Stored<StoredMemory> | undefined,
    documents: readonly MemoryDocument[],
    updatedAt: string,
  ): readonly ports.Write[] => {
    const id = idOf({ userId, agentId });
    if (documents.length > 0)
      return [collection.write.put(id, { userId, agentId, updatedAt, documents }, before?.version ?? "absent")];
    return before ? [collection.write.remove(id, before.version)] : [];
  };

  return {
    /** Commits the writes of a turn that has not ended. Otherwise a slow write could come back after the erasure of its user. */
    committing:
      (signal: AbortSignal): Commit =>
      async (writes) => {
        signal.throwIfAborted();
        await batch(writes);
      },
    /** The documents of a memory, in the order of their names. */
    read: async (owner: MemoryOwner): Promise<readonly MemoryDocument[]> =>
      (await collection.get(idOf(owner)))?.value.documents ?? [],
    /** Create or replace a document. A document that has this text already stays as it is, so that a write can be repeated. */
    write: (owner: MemoryOwner, { name, text, writtenBy, ...given }: WrittenDocument, at: number, commit = batch) =>
      writeAgain(async (): Promise<MemoryChange<"full">> => {
        const found = await collection.get(idOf(owner));
        const documents = found?.value.documents ?? [];
        const before = documents.find((each) => each.name === name);
        const version = versionOf(text);
        if (before?.version === version) return { status: "done", document: before };
        if ((before?.version ?? "absent") !== given.expected) return { status: "changed", document: before };
        if (!before && documents.length >= given.maxDocuments) return { status: "full" };
        const updatedAt = new Date(at).toISOString();
        const document = { name, text, version, updatedAt, writtenBy };
        const others = documents.filter((each) => each !== before);
        await commit(replacing(owner, found, [...others, document].toSorted(byName), updatedAt));
        return { status: "done", document };
      }),
    /** Erase a document, in any version if none is expected. */
    erase: (owner: MemoryOwner, name: string, expected: string | undefined, at: number, commit = batch) =>
      writeAgain(async (): Promise<MemoryChange<"missing">> => {
        const found = await collection.get(idOf(owner));
        const documents = found?.value.documents ?? [];
        const before = documents.find((each) => each.name === name);
        if (!before) return { status: "missing" };
        if (expected !== undefined && before.version !== expected) return { status: "changed", document: before };
        const others = documents.filter((each) => each !== before);
        await commit(replacing(owner, found, others, new Date(at).toISOString()));
        return { status: "done", document: before };
      }),
    /** Erase all documents of a memory. Returns how many. */
    eraseAll: (owner: MemoryOwner, commit = batch): Promise<number> =>
      writeAgain(async () => {
        const found = await collection.get(idOf(owner));
        if (found) await commit(replacing(owner, found, [], ""));
        return found?.value.documents.length ?? 0;
      }),
    /** The memories of a user, of all agents, in pages. */
    async *ofUser(userId: string): AsyncGenerator<readonly StoredMemory[], void> {
      for await (const page of readPages(collection, { where: { userId }, limit: PAGE })) yield page.map(({ value }) => value);
    },
    /** Erase the memories of a user, of all agents. Returns the number of documents. */
    async eraseUser(userId: string): Promise<number> {
      let count = 0;
      for await (const page of readPages(collection, { where: { userId }, limit: PAGE })) {
        for (const { id, value } of page) if (await collection.remove(id)) count += value.documents.length;
      }
      return count;
    },
    /** Erase the memories in which nothing changed since this time (ISO 8601). */
    async eraseBefore(before: string, closing: AbortSignal): Promise<void> {
      const order = { by: "updatedAt", direction: "ascending" } as const;
      for await (const page of readPages(collection, { order, limit: PAGE })) {
        for (const { id, version, value } of page) {
          if (closing.aborted || value.updatedAt >= before) return;
          await collection.remove(id, version).catch(undefinedAtConflict);
        }
      }
    },
  };
}

function idOf({ userId, agentId }: MemoryOwner): string {
  return `memory_${digestOf([userId, agentId])}`;
}

const VERSION_CHARACTERS = 22;

/** The version of a document with this text. It changes with each character. */
function versionOf(text: string): string {
  return hash("sha256", text, "base64url").slice(0, VERSION_CHARACTERS);
}

function byName(one: MemoryDocument, other: MemoryDocument): number {
  return one.name < other.name ? -1 : 1;
}
