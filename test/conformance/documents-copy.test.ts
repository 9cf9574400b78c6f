import { systemClock } from "@portico/adapters/clock/system";
import { copyDocuments, type CopyDocumentsOptions } from "@portico/adapters/documents/copy-documents";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { ports } from "@portico/core";
import { beforeEach, describe, expect, it } from "vitest";
import { openAdapter } from "./open-adapter.ts";

type Texts = Record<string, string>;

const source = async (texts: Texts): Promise<ports.Documents> =>
  (await openAdapter(memoryDocuments({ id: "agents", texts }), [systemClock()])).port;

const textsOf = async (documents: ports.Documents): Promise<Texts> =>
  Object.fromEntries(await Promise.all((await documents.list()).map(async (name) => [name, (await documents.read(name))!.text])));

const save = async (documents: ports.Documents, name: string, text: string | undefined): Promise<void> => {
  const version = (await documents.read(name))?.version ?? "absent";
  await (text === undefined ? documents.remove(name, version) : documents.write(name, text, version));
};

describe("copyDocuments", () => {
  let from: ports.Documents;
  let to: ports.Documents;
  beforeEach(async () => {
    from = await source({ "a/agent.json": "1", "b/agent.json": "2", "b/notes.md": "n" });
    to = await source({});
  });
  const copy = (options: Partial<CopyDocumentsOptions> = {}) =>
    copyDocuments({ from, to, accepts: (name) => name.endsWith("/agent.json"), ...options });

  it("writes the accepted documents into an empty place, and nothing more when nothing changed", async () => {
    const first = await copy();
    expect(first).toMatchObject({ written: ["a/agent.json", "b/agent.json"], removed: [], unchanged: [], conflicts: [] });
    expect(await textsOf(to)).toEqual({ "a/agent.json": "1", "b/agent.json": "2" });
    expect(await copy()).toEqual({ ...first, written: [], unchanged: first.written });
  });

  it("writes what changed here since the last copy, in both directions", async () => {
    const { digests } = await copy();
    await save(from, "a/agent.json", "changed");
    const second = await copy({ base: digests });
    expect(second).toMatchObject({ written: ["a/agent.json"], unchanged: ["b/agent.json"] });
    await save(to, "b/agent.json", "changed there");
    const back = await copy({ from: to, to: from, base: second.digests });
    expect(back).toMatchObject({ written: ["b/agent.json"], conflicts: [] });
    expect((await from.read("b/agent.json"))?.text).toBe("changed there");
    expect((await copy({ base: back.digests })).unchanged).toHaveLength(2);
  });

  it("changes nothing where a document was changed, made or removed there, unless it is forced", async () => {
    const { digests } = await copy();
    await save(to, "a/agent.json", "theirs");
    await save(to, "b/agent.json", undefined);
    await save(to, "c/agent.json", "new of theirs");
    for (const name of ["a", "b", "c", "d"]) await save(from, `${name}/agent.json`, "ours");
    const before = await textsOf(to);
    const refused = await copy({ base: digests });
    expect(refused).toEqual({
      ...{ written: [], removed: [], unchanged: [], digests },
      conflicts: ["a/agent.json", "b/agent.json", "c/agent.json"],
    });
    expect(await textsOf(to)).toEqual(before);
    expect((await copy({ base: digests, force: true })).written).toHaveLength(4);
    expect(new Set(Object.values(await textsOf(to)))).toEqual(new Set(["ours"]));
  });

  it("removes what is missing here only where it is told to, and never what it has not seen", async () => {
    const { digests } = await copy();
    await save(from, "b/agent.json", undefined);
    expect(await copy({ base: digests })).toMatchObject({ removed: [], unchanged: ["a/agent.json"] });
    expect(await copy({ base: digests, prune: true })).toMatchObject({ removed: ["b/agent.json"] });
    await save(to, "c/agent.json", "new of theirs");
    await save(to, "c/notes.md", "not accepted");
    expect(await copy({ base: digests, prune: true })).toMatchObject({ removed: [], conflicts: ["c/agent.json"] });
    expect(await copy({ prune: true, force: true })).toMatchObject({ removed: ["c/agent.json"] });
    expect(await textsOf(to)).toEqual({ "a/agent.json": "1", "c/notes.md": "not accepted" });
  });

  it("throws DocumentConflict for a change that comes between the look and the write", async () => {
    const meanwhile = { ...to, write: async () => Promise.reject(new ports.DocumentConflict("changed")) };
    await expect(copy({ to: meanwhile })).rejects.toBeInstanceOf(ports.DocumentConflict);
  });
});
