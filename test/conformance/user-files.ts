import { buffer } from "node:stream/consumers";
import type { Adapter, ports } from "@portico/core";
import { afterEach, beforeEach, expect, it } from "vitest";
import { describeSuite } from "./describe-suite.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

/** The adapter under test, and what it needs. */
export interface UserFilesSubject {
  readonly adapter: Adapter<typeof ports.userFiles>;
  /** Adapters that fill what the adapter needs. */
  readonly others?: readonly Adapter[];
  /** Media and an attachment of the user `ada`, each called `note.txt` or `picture.png` and holding the bytes given here. */
  add(): Promise<{ readonly mediaId: string; readonly fileReference: string; readonly bytes: Uint8Array }>;
}

const { signal } = new AbortController();

/** The law of the port `userFiles`, as vitest tests. `make` is called once per test. */
export function userFilesConformance(name: string, make: () => UserFilesSubject | Promise<UserFilesSubject>): void {
  describeSuite(`user files port: ${name}`, () => {
    let opened: OpenAdapter<ports.UserFiles>;
    let files: ports.UserFiles;
    let known: Awaited<ReturnType<UserFilesSubject["add"]>>;
    beforeEach(async () => {
      const { adapter, others = [], add } = await make();
      // A many-port: opened alone it is one filling.
      opened = (await openAdapter(adapter, others)) as unknown as OpenAdapter<ports.UserFiles>;
      files = opened.port;
      known = await add();
    });
    afterEach(() => opened.close());

    it("gives a user's own files, whole", async () => {
      const found = [await files.media("ada", known.mediaId), await files.attachment("ada", known.fileReference)];
      for (const file of found) {
        expect(file?.size).toBe(known.bytes.length);
        expect(new Uint8Array(await buffer(await file!.open(signal)))).toEqual(known.bytes);
      }
      expect(found.map((file) => file?.name)).toEqual(["picture.png", "note.txt"]);
      expect(found[0]?.mimeType).toBe("image/png");
    });

    it("gives no user the files of another user", async () => {
      for (const userId of ["bob", "", "ADA", "constructor"]) {
        expect(await files.media(userId, known.mediaId)).toBeUndefined();
        expect(await files.attachment(userId, known.fileReference)).toBeUndefined();
      }
    });

    it.each(["", "..", "../../etc/passwd", "constructor", "\0", "\ud800", "x".repeat(10_000), "http://example/file"])(
      "answers undefined for %j, which is none",
      async (id) => {
        expect(await files.media("ada", id)).toBeUndefined();
        expect(await files.attachment("ada", id)).toBeUndefined();
      },
    );

    it("holds a user's own files, and no others, for the work that uses them", async () => {
      const used = { mediaIds: [known.mediaId, known.mediaId], fileReferences: [known.fileReference, known.fileReference] };
      if (!files.hold) return expect(files.release).toBeUndefined();
      const writes = (await files.hold("ada", "work", used))!;
      const ids = writes.map(({ collection, id }) => `${collection}/${id}`);
      expect(new Set(ids).size).toBe(ids.length);
      expect(files.release!("work", used).length).toBeGreaterThan(0);
      expect(await files.hold("ada", "work", { mediaIds: [], fileReferences: [] })).toEqual([]);
      for (const userId of ["bob", "", "constructor"]) expect(await files.hold(userId, "work", used)).toBeUndefined();
      for (const unknown of ["", "../../etc/passwd", "constructor"]) {
        expect(await files.hold("ada", "work", { mediaIds: [unknown], fileReferences: [] })).toBeUndefined();
        expect(await files.hold("ada", "work", { mediaIds: [], fileReferences: [unknown] })).toBeUndefined();
      }
    });

    it("tells media and attachments apart", async () => {
      expect(await files.media("ada", known.fileReference)).toBeUndefined();
      expect(await files.attachment("ada", known.mediaId)).toBeUndefined();
    });
  });
}
