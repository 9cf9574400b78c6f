import type { ports } from "@portico/core";

/** A file that must not be removed, because a work uses it. */
interface FileHold {
  /** The key of its bytes in the port `blobs`. */
  readonly file: string;
  readonly work: string;
}

export type FileHolds = ReturnType<typeof createFileHolds>;

/**
 * Which files are in use. A hold is written in the commit that accepts the work, and removed in the commit that ends it. The same commit
 * writes the file's record again: a removal of the file expects the earlier version of the record, and so conflicts.
 */
export function createFileHolds(records: ports.Records) {
  const holds = records.collection<FileHold>({ name: "file-holds", indexes: { byFile: ["file"] } });
  const idOf = (key: string, work: string) => `${key.replace("/", ":")}:${work}`;
  return {
    hold: (key: string, work: string): ports.Write => holds.write.put(idOf(key, work), { file: key, work }),
    release: (key: string, work: string): ports.Write => holds.write.remove(idOf(key, work)),
    async isHeld(key: string): Promise<boolean> {
      return (await holds.query({ where: { file: key }, limit: 1 })).items.length > 0;
    },
  };
}
