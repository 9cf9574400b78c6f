import { ports, Secret } from "@portico/core";
import type { Driver } from "unstorage";

/** A driver of unstorage by its name, as a configuration spells it. */
export interface NamedDriver {
  /** Such as `redis`, `s3`, `http`, `db0`. */
  readonly driver: string;
  /** Options of the driver. A secret in them is revealed only to the driver. */
  readonly options?: Readonly<Record<string, unknown>>;
}

/**
 * Loads a driver of unstorage and creates it. `db0` takes the name of db0's `connector` (default: `node-sqlite`), the
 * `tableName`, and the connector's own options. Throws DocumentsUnavailable for a name that unstorage does not have, and if a
 * package of the driver is missing.
 */
export async function loadDriver({ driver: name, options = {} }: NamedDriver): Promise<Driver> {
  const { builtinDrivers } = await import("unstorage");
  const from = (builtinDrivers as Readonly<Record<string, string>>)[name];
  if (from === undefined) throw new ports.DocumentsUnavailable(`unstorage has no driver "${name}"`);
  try {
    const revealed = reveal(options);
    if (name === "db0") return await loadDatabase(from, revealed);
    return (await makerIn(from))(revealed) as Driver;
  } catch (cause) {
    const missing = /(?:Cannot|Could not) find (?:package|module) '([^']+)'/.exec(
      cause instanceof Error ? cause.message : "",
    )?.[1];
    const why = missing === undefined ? "cannot be made from its options" : `needs the package ${missing}`;
    throw new ports.DocumentsUnavailable(`The driver "${name}" of unstorage ${why}`, { cause });
  }
}

async function loadDatabase(from: string, { connector = "node-sqlite", tableName, ...options }: Options): Promise<Driver> {
  const { connectors, createDatabase } = await import("db0");
  const connectorFrom = (connectors as Readonly<Record<string, string>>)[String(connector)];
  if (connectorFrom === undefined) throw new TypeError(`db0 has no connector "${String(connector)}"`);
  const database = createDatabase((await makerIn(connectorFrom))(options) as Parameters<typeof createDatabase>[0]);
  const driver = (await makerIn(from))({ database, tableName }) as Driver;
  // The driver itself leaves the database open.
  return { ...driver, dispose: () => database.dispose() };
}

type Options = Readonly<Record<string, unknown>>;

async function makerIn(from: string): Promise<(options: Options) => unknown> {
  const { default: make } = (await import(from)) as { readonly default: (options: Options) => unknown };
  return make;
}

function reveal(options: Options): Options {
  return Object.fromEntries(
    Object.entries(options).map(([key, value]) => {
      if (value instanceof Secret) return [key, value.reveal()];
      const isGroup = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
      return [key, isGroup ? reveal(value as Options) : value];
    }),
  );
}
