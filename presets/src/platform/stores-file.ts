import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { type Adapter, type OpenedPreset, type Port, record, StoreForeign } from "@portico/core";
import * as v from "valibot";

/** The adapters of a data directory: their kind, and their place in it. The other kinds are in the records store. */
const USUAL: Readonly<Record<string, { readonly kind: string; readonly place?: string }>> = {
  records: { kind: "records/sqlite", place: "records.sqlite" },
  log: { kind: "log/sqlite" },
  engine: { kind: "engine/embedded" },
  blobs: { kind: "blobs/files", place: "files" },
  secrets: { kind: "secrets/files", place: "credentials.json" },
  audit: { kind: "audit/records" },
  usage: { kind: "usage/records" },
  schedules: { kind: "schedules/records" },
};
/** Agents and definitions have folders of their own. */
const DOCUMENTS: Readonly<Record<string, string>> = { agents: "agents/documents", documents: "documents/unstorage" };

const storeSchema = v.object({ kind: v.string(), place: v.optional(v.string()) });
const storesSchema = v.object({ preset: v.string(), stores: record(v.string(), storeSchema) });

/** Which adapters keep the data of an instance, by port. Contains no secret. */
export type InstanceStores = v.InferOutput<typeof storesSchema>;

/** The stores of a preset. Places inside of the data directory are relative to it. */
export function storesOf({ name, adapters }: OpenedPreset, dataDir: string): InstanceStores {
  const kept = adapters.filter(({ spec: { port } }) => Object.hasOwn(USUAL, port.id) || Object.hasOwn(DOCUMENTS, port.id));
  const usualFirst = kept.toSorted((one, other) => Number(isUsualKind(other)) - Number(isUsualKind(one)));
  return {
    preset: name,
    // Of several adapters of a many-port, an unusual one counts.
    stores: Object.fromEntries(usualFirst.map((adapter) => [adapter.spec.port.id, storeOf(adapter, dataDir)])),
  };
}

/** For `onOpen` of a preset whose data is in a data directory: writes down which stores it has. */
export function noteStores(dataDir: string): (opened: OpenedPreset) => void {
  return (opened) => {
    const stores = storesOf(opened, dataDir);
    const [other] = otherStores(stores);
    // A restored store that is not opened would look like a loss of everything.
    if (other && other.port !== "secrets" && existsSync(join(dataDir, RESTORED)))
      throw new StoreForeign(
        `The data directory ${dataDir} was restored from a backup, but the preset ${opened.name} keeps its ${other.port} in ${other.kind}: it would not use the restored data. Start it with another data directory, or remove ${RESTORED} if the restored data is not needed`,
      );
    const text = `${JSON.stringify(stores, null, 2)}\n`;
    const path = join(dataDir, STORES);
    if (existsSync(path) && readFileSync(path, "utf8") === text) return;
    mkdirSync(dataDir, { recursive: true, mode: 0o700 });
    writeFileSync(`${path}.new`, text, { mode: 0o600 });
    renameSync(`${path}.new`, path);
  };
}

/** What the last start with a data directory wrote down. Undefined if none did, or the file cannot be read. */
export function readStores(dataDir: string): InstanceStores | undefined {
  try {
    return v.parse(storesSchema, JSON.parse(readFileSync(join(dataDir, STORES), "utf8")));
  } catch {
    return undefined;
  }
}

/** A store that is not one of the data directory. */
export interface OtherStore {
  readonly port: string;
  readonly kind: string;
}

/** The stores that are not those of a data directory. With `only`, among these ports. */
export function otherStores({ stores }: InstanceStores, only?: readonly Port<any>[]): readonly OtherStore[] {
  return Object.entries(USUAL).flatMap(([port, usual]) => {
    const found = stores[port];
    if (!found || (only && !only.some(({ id }) => id === port))) return [];
    return found.kind === usual.kind && found.place === usual.place ? [] : [{ port, kind: found.kind }];
  });
}

/** The sources of documents that are no documents of the settings' folders. */
export function otherDocuments({ stores }: InstanceStores): readonly OtherStore[] {
  return Object.entries(DOCUMENTS).flatMap(([port, usual]) => {
    const found = stores[port];
    return found && found.kind !== usual ? [{ port, kind: found.kind }] : [];
  });
}

/** Written by a restore. */
const RESTORED = "restored.json";
const STORES = "stores.json";

function isUsualKind({ name, spec }: Adapter): boolean {
  return name === (USUAL[spec.port.id]?.kind ?? DOCUMENTS[spec.port.id]);
}

function storeOf({ name, spec, options }: Adapter, dataDir: string): InstanceStores["stores"][string] {
  const place = spec.place?.(options);
  if (place === undefined) return { kind: name };
  const inside = relative(resolve(dataDir), place);
  return { kind: name, place: inside.startsWith("..") || isAbsolute(inside) ? place : inside };
}
