import type { ports } from "@portico/core";
import { copyDocuments } from "@portico/adapters/documents/copy-documents";
import { makeTables as makeEngineTables } from "../engine/cluster/tables.ts";
import { postgresStoreOf } from "../records/postgres/store.ts";
import { MOVE_PARTS, type MovePart, type MoveTarget } from "./move/copy-parts.ts";
import { MoveFailed } from "./move/move-failed.ts";
import { openSource } from "./move/open-source.ts";
import { countProcesses, removeData, tablesWithData } from "./move/postgres-target.ts";

export { MoveFailed } from "./move/move-failed.ts";

/** Options of `moveStore`. */
export interface MoveStoreOptions {
  /** The data directory of the instance. No process may have it open. */
  readonly from: string;
  /** Ports of one app: records in PostgreSQL, and the log in the same schema. No other process may use them. */
  readonly to: Omit<MoveTarget, "store">;
  /** Documents to copy, by source. Default: none. */
  readonly documents?: readonly MovedDocuments[];
  /** Called before each part, for people. */
  readonly onPart?: (part: MovePart["name"] | "documents" | "comparison") => void;
  readonly signal?: AbortSignal;
}

/** One source of documents, and where it is copied to. */
export interface MovedDocuments {
  readonly from: Pick<ports.Documents, "list" | "read">;
  readonly to: ports.Documents;
  /** Which names are copied. Default: all. */
  readonly accepts?: (name: string) => boolean;
}

/** How many things of each part were moved. */
export type MovedStore = Readonly<Record<MovePart["name"] | "documents", number>>;

/** A move that stopped is repeated from its beginning. One that has finished is not repeated. */
interface Move {
  readonly isComplete: boolean;
}

/** The collection in which a store notes a move into it. */
export const MOVES = { name: "instance-moves" } as const satisfies ports.CollectionSpec;
const MOVE = "local";
const SHOWN = 5;

/**
 * Copy all data of a data directory (`sqliteStore`) into an empty store in PostgreSQL, and compare them: the counts and SHA-256 of
 * every collection, stream and blob, and each secret and document. The data directory keeps its data. Throws MoveFailed with what is
 * wrong and what to do, TypeError if the records are not in PostgreSQL, and the errors of the ports.
 */
export async function moveStore(options: MoveStoreOptions): Promise<MovedStore> {
  const { from, to, documents = [], onPart = () => {}, signal } = options;
  const store = postgresStoreOf(to.records);
  if (!store) throw new TypeError("An instance is moved into records in PostgreSQL");
  const target: MoveTarget = { ...to, store };
  const source = await openSource(from);
  try {
    const moves = to.records.collection<Move>(MOVES);
    await prepare(target, (await moves.get(MOVE))?.value);
    await moves.put(MOVE, { isComplete: false });

    const moved = {} as Record<MovePart["name"] | "documents", number>;
    for (const { name, copy } of MOVE_PARTS) {
      onPart(name);
      moved[name] = await copy(source, target, signal);
    }
    onPart("documents");
    moved.documents = 0;
    for (const each of documents) moved.documents += (await copyDocuments({ ...each, force: true })).written.length;

    onPart("comparison");
    const differing: string[] = [];
    for (const { compare } of MOVE_PARTS) differing.push(...(await compare(source, target)));
    for (const each of documents) differing.push(...(await compareDocuments(each)));
    if (differing.length > 0) throw new MoveFailed(`These differ after the move: ${inWords(differing)}. Repeat the move`);
    await moves.put(MOVE, { isComplete: true });
    return moved;
  } finally {
    await source.close();
  }
}

/** Whether a move into these records has begun and has not finished. Throws RecordsUnavailable. */
export async function isMoveUnfinished(records: ports.Records): Promise<boolean> {
  const move = await records.collection<Move>(MOVES).get(MOVE);
  return move !== undefined && !move.value.isComplete;
}

/** No table of the target contains data afterwards. */
async function prepare({ store, blobs }: MoveTarget, earlier: Move | undefined): Promise<void> {
  if (earlier?.isComplete) throw new MoveFailed("An instance was moved into this store before");
  await makeEngineTables(store);
  const running = await countProcesses(store);
  if (running > 0)
    throw new MoveFailed(`${running === 1 ? "A process uses" : `${running} processes use`} this store: stop them first`);
  // Blobs of an earlier move are overwritten, but not removed: since then, the options may name another place with other blobs.
  if (earlier) return removeData(store);
  const present = await tablesWithData(store);
  if (present.length > 0) {
    throw new MoveFailed(`The schema "${store.schema}" contains data (${inWords(present)}): choose an empty schema`);
  }
  for await (const _key of blobs.keys())
    throw new MoveFailed("The target contains blobs: choose an empty bucket, prefix or folder");
}

async function compareDocuments({ from, to, accepts = () => true }: MovedDocuments): Promise<readonly string[]> {
  const differing: string[] = [];
  for (const name of (await from.list()).filter(accepts)) {
    const [wanted, present] = await Promise.all([from.read(name), to.read(name)]);
    if (wanted?.text !== present?.text) differing.push(`document ${name} of ${to.id}`);
  }
  return differing;
}

function inWords(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN).join(", ");
  return names.length > SHOWN ? `${shown} and ${names.length - SHOWN} more` : shown;
}
