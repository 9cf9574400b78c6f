import { createHash } from "node:crypto";
import { ports } from "@portico/core";
import type { Driver } from "unstorage";
import type { DocumentPlace } from "../document-place.ts";
import { decodeText } from "./decode-text.ts";

/** Documents in a driver's store. Uses the driver directly, because unstorage's storage over it parses values as JSON. */
export function driverPlace(driver: Driver): DocumentPlace {
  const read = async (name: string): Promise<string | undefined> => {
    const key = toKey(name);
    const value: unknown = (await readRaw(driver, key)) ?? (await driver.getItem(key, {}));
    if (value === null || value === undefined) return undefined;
    if (typeof value === "string") return value;
    if (value instanceof Uint8Array) return decodeText(value);
    if (value instanceof ArrayBuffer) return decodeText(new Uint8Array(value));
    throw new ports.DocumentsUnavailable("The driver returned a value that is not text");
  };
  return {
    isReadOnly: !driver.setItem,
    read,
    async replace(name, text, check) {
      check(await read(name));
      if (!driver.setItem) throw new ports.DocumentsUnavailable("The driver cannot write");
      await driver.setItem(toKey(name), text, {});
    },
    async remove(name, check) {
      const current = await read(name);
      check(current);
      if (current === undefined) return;
      if (!driver.removeItem) throw new ports.DocumentsUnavailable("The driver cannot remove");
      await driver.removeItem(toKey(name), {});
    },
    list: async () => (await driver.getKeys("", {})).map(toName),
    async fingerprint(name) {
      const { mtime, size, ...more } = await metaOf(driver, toKey(name));
      // A modification time alone may be in whole seconds, as in databases and HTTP: two changes within a second would look like
      // one.
      if (more["etag"] !== undefined || (mtime !== undefined && size !== undefined))
        return [Number(mtime), size, more["etag"]].join(":");
      const text = await read(name);
      return text === undefined ? undefined : createHash("sha256").update(text).digest("hex");
    },
    ...(driver.watch && { watch: async (hint) => (await driver.watch?.((_event, key) => hint(toName(key)))) ?? (() => {}) }),
    close: () => driver.dispose?.(),
  };
}

/** Raw if possible, because some drivers parse JSON. Also undefined for a driver that keeps texts separate from raw values. */
async function readRaw(driver: Driver, key: string): Promise<unknown> {
  try {
    return await driver.getItemRaw?.(key, {});
  } catch (error) {
    // The HTTP driver throws a TypeError for a missing document.
    if (!(error instanceof TypeError) || (await driver.hasItem(key, {}))) throw error;
    return undefined;
  }
}

/** Empty if the driver throws for a missing document. Reading decides. */
async function metaOf(driver: Driver, key: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return { ...(await driver.getMeta?.(key, {})) };
  } catch {
    return {};
  }
}

/** unstorage's own spelling of a path. */
function toKey(name: string): string {
  return name.replaceAll("/", ":");
}

/** Drivers on file systems return `/`, others `:`. */
function toName(key: string): string {
  return key.replaceAll(":", "/");
}
