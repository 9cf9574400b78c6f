import { createHash } from "node:crypto";
import { ports } from "@portico/core";
import type { Driver } from "unstorage";
import type { DocumentPlace } from "../document-place.ts";
import { decodeText } from "./decode-text.ts";

/** Documents in a driver's store. The driver itself and not unstorage's storage over it, which parses what it reads as JSON. */
export function driverPlace(driver: Driver): DocumentPlace {
  const read = async (name: string): Promise<string | undefined> => {
    const key = toKey(name);
    // Raw where it can be: some drivers parse, too.
    const value: unknown = await (driver.getItemRaw ? driver.getItemRaw(key, {}) : driver.getItem(key, {}));
    if (value === null || value === undefined) return undefined;
    if (typeof value === "string") return value;
    if (value instanceof Uint8Array) return decodeText(value);
    if (value instanceof ArrayBuffer) return decodeText(new Uint8Array(value));
    throw new ports.DocumentsUnavailable("The driver answered with what is no text");
  };
  return {
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
      const { mtime, size, ...more } = (await driver.getMeta?.(toKey(name), {})) ?? {};
      if (mtime !== undefined) return [Number(mtime), size, more["etag"]].join(":");
      const text = await read(name);
      return text === undefined ? undefined : createHash("sha256").update(text).digest("hex");
    },
    ...(driver.watch && { watch: async (hint) => (await driver.watch?.((_event, key) => hint(toName(key)))) ?? (() => {}) }),
    close: () => driver.dispose?.(),
  };
}

/** unstorage's own spelling of a path. */
function toKey(name: string): string {
  return name.replaceAll("/", ":");
}

/** Drivers on file systems answer with `/`, others with `:`. */
function toName(key: string): string {
  return key.replaceAll(":", "/");
}
