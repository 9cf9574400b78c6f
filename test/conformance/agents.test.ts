import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { documentAgents } from "@portico/adapters/agents/documents";
import { memoryAgents } from "@portico/adapters/agents/memory";
import { createBusHub, memoryBus } from "@portico/adapters/bus/memory";
import { createManualClock, manualClock } from "@portico/adapters/clock/manual";
import { systemClock } from "@portico/adapters/clock/system";
import { memoryDocuments } from "@portico/adapters/documents/memory";
import { recordDocuments } from "@portico/adapters/documents/records";
import { unstorageDocuments } from "@portico/adapters/documents/unstorage";
import { sqliteRecords } from "@portico/adapters/records/sqlite";
import { memoryTelemetry } from "@portico/adapters/telemetry/memory";
import type { ports } from "@portico/core";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { agentsConformance } from "./agents.ts";
import { type OpenAdapter, openAdapter } from "./open-adapter.ts";

const folder = mkdtempSync(join(tmpdir(), "portico-agents-"));
afterAll(() => rmSync(folder, { recursive: true }));

let folders = 0;
const newFolder = (): string => join(folder, `${++folders}`);

function editIn(directory: string) {
  return (id: string, text: string | Uint8Array | null | undefined) => {
    if (text === undefined) return rmSync(join(directory, id), { recursive: true });
    mkdirSync(join(directory, id), { recursive: true });
    if (text !== null) writeFileSync(join(directory, id, "agent.json"), text);
  };
}

agentsConformance("memory", () => {
  const agents = new Map<string, string | null>();
  const edit = (id: string, text: string | null | undefined) =>
    void (text === undefined ? agents.delete(id) : agents.set(id, text));
  return { adapter: memoryAgents({ agents }), others: [], edit };
});

agentsConformance("documents in a folder", () => {
  const directory = newFolder();
  mkdirSync(directory);
  const edit = editIn(directory);
  const others = [unstorageDocuments({ id: "agents", dir: directory, depth: 2, pollMs: 50 }), systemClock()];
  const writeFile = (id: string, path: string, text: string) => {
    mkdirSync(dirname(join(directory, id, path)), { recursive: true });
    writeFileSync(join(directory, id, path), text);
  };
  const spoil = (id: string) => edit(id, new Uint8Array([0xff, 0xfe, 0xfd]));
  return { adapter: documentAgents({ directory }), others, edit, spoil, writeFile };
});

agentsConformance("documents in records, which another process writes", async () => {
  const path = join(newFolder(), "records.sqlite");
  mkdirSync(dirname(path));
  const hub = createBusHub();
  const stores = () => [sqliteRecords({ path }), memoryBus({ hub }), memoryTelemetry({}), systemClock()];
  const other = await openAdapter(recordDocuments({ id: "agents" }), stores());
  const write = async (name: string, text: string) =>
    void (await other.port.write(name, text, (await other.port.read(name))?.version ?? "absent"));
  return {
    adapter: documentAgents({}),
    others: [recordDocuments({ id: "agents" }), ...stores()],
    close: () => other.close(),
    async edit(id, text) {
      if (typeof text === "string") return write(`${id}/agent.json`, text);
      // A folder is there if it has documents.
      if (text === null) return write(`${id}/notes.md`, "nothing");
      for (const name of await other.port.list())
        if (name.startsWith(`${id}/`)) await other.port.remove(name, (await other.port.read(name))!.version);
    },
    writeFile: (id, file, text) => write(`${id}/${file}`, text),
  };
});

describe("agents/documents", () => {
  it("takes no other source of documents for the agents'", async () => {
    const others = [memoryDocuments({ id: "workflows" }), systemClock()];
    await expect(openAdapter(documentAgents({}), others)).rejects.toThrow("No source of documents is called agents");
  });

  it("finds agents in documents that are no files, without git", async () => {
    const texts = { "a/agent.json": '{"name":"A"}', "b/notes.md": "nothing", "top.json": "{}" };
    const others = [memoryDocuments({ id: "agents", texts }), systemClock()];
    const { port, close } = await openAdapter(documentAgents({}), others);
    expect((await port.list()).map(({ id, metadataError, git }) => [id, metadataError, git.hasGit])).toEqual([
      ["a", undefined, false],
      ["b", "missing", false],
    ]);
    await close();
  });
});

describe("agents/documents in documents that several processes write", () => {
  it("finds what another process saved as soon as it is saved, and parses nothing again that did not change", async () => {
    const path = join(newFolder(), "records.sqlite");
    mkdirSync(dirname(path));
    // No process hears of the others, and no time passes.
    const stores = () => [
      sqliteRecords({ path }),
      memoryBus({}),
      memoryTelemetry({}),
      manualClock({ clock: createManualClock() }),
    ];
    const other = await openAdapter(recordDocuments({ id: "agents" }), stores());
    const { version } = await other.port.write("a/agent.json", '{"webhooks":{"enabled":true}}', "absent");
    const here = await openAdapter(documentAgents({}), [recordDocuments({ id: "agents" }), ...stores()]);
    const webhooks = async () => (await here.port.find("a"))?.definition["webhooks"];
    const first = await webhooks();
    expect([first, await webhooks()]).toEqual([{ enabled: true }, expect.toSatisfy((same) => same === first)]);
    const paused = await other.port.write("a/agent.json", '{"webhooks":{"enabled":false}}', version);
    expect(await webhooks()).toEqual({ enabled: false });
    await other.port.remove("a/agent.json", paused.version);
    expect(await here.port.find("a")).toBeUndefined();
    await here.close();
    await other.close();
  });
});

describe("an agent.json that cannot be read for a moment", () => {
  it("is read again at each request, because nothing announces changes", async () => {
    let isAway = true;
    const driver = {
      hasItem: async () => true,
      getItem: async () => {
        if (isAway) throw new Error("Too many open files");
        return '{"name":"A"}';
      },
      getKeys: async () => ["a:agent.json"],
    };
    const others = [unstorageDocuments({ id: "agents", driver }), manualClock({ clock: createManualClock() })];
    const { port, close } = await openAdapter(documentAgents({}), others);
    expect((await port.find("a"))?.metadataError).toBe("unreadable");
    isAway = false;
    const found = await port.find("a");
    expect([found?.definition.name, found?.metadataError]).toEqual(["A", undefined]);
    await close();
  });
});

const git = (cwd: string, ...args: string[]) =>
  execFileSync("git", ["-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main", ...args], {
    cwd,
    stdio: "pipe",
  });
const hasGit = (() => {
  try {
    git(folder, "--version");
    return true;
  } catch {
    console.warn("git is not installed: the tests of git states are skipped");
    return false;
  }
})();

describe.skipIf(!hasGit)("an agent's git state", () => {
  let directory: string;
  let own: string;
  let opened: OpenAdapter<ports.Agents>;
  const clock = createManualClock();
  beforeEach(async (test) => {
    directory = newFolder();
    own = join(directory, "a");
    mkdirSync(own, { recursive: true });
    writeFileSync(join(own, "agent.json"), '{"name":"A"}');
    const others = [unstorageDocuments({ id: "agents", dir: directory, depth: 2 }), manualClock({ clock })];
    opened = await openAdapter(documentAgents({ directory }), others);
    test.onTestFinished(() => opened.close());
  });
  const state = async () => (await opened.port.find("a"))?.git;
  /** What is remembered is looked for again. */
  const later = async () => {
    await clock.advance(6000);
    await state();
    await vi.waitFor(async () => expect((await state())?.syncStatus).not.toBe("unknown"), { timeout: 30_000 });
    return state();
  };
  const commit = (cwd: string, text: string) => {
    writeFileSync(join(cwd, "notes"), text);
    git(cwd, "add", "-A");
    git(cwd, "commit", "-qm", text);
  };

  it("is absent without the agent's own repository, also if a repository encloses all agents", async () => {
    git(directory, "init", "-q");
    expect(await state()).toEqual({ hasGit: false });
  });

  it("knows a repository without a remote, and remembers it for a short time", async () => {
    expect(await state()).toEqual({ hasGit: false });
    git(own, "init", "-q");
    expect(await state()).toEqual({ hasGit: false });
    await clock.advance(6000);
    expect(await state()).toEqual({ hasGit: true, hasRemote: false });
  });

  it("says unknown until the branch was compared with its upstream, and then synced, ahead, behind or diverged", async () => {
    const remote = newFolder();
    const other = newFolder();
    git(folder, "init", "-q", "--bare", remote);
    git(own, "init", "-q");
    commit(own, "one");
    git(own, "remote", "add", "origin", remote);
    expect(await state()).toEqual({ hasGit: true, hasRemote: true, syncStatus: "unknown" });
    git(own, "push", "-qu", "origin", "main");
    expect(await later()).toMatchObject({ syncStatus: "synced" });
    commit(own, "two");
    await clock.advance(6000);
    await vi.waitFor(async () => expect((await state())?.syncStatus).toBe("ahead"), { timeout: 30_000 });
    git(own, "push", "-q");
    git(folder, "clone", "-q", remote, other);
    commit(other, "three");
    git(other, "push", "-q");
    git(own, "fetch", "-q");
    await clock.advance(6000);
    await vi.waitFor(async () => expect((await state())?.syncStatus).toBe("behind"), { timeout: 30_000 });
    commit(own, "four");
    await clock.advance(6000);
    await vi.waitFor(async () => expect((await state())?.syncStatus).toBe("diverged"), { timeout: 30_000 });
  });

  it("is known in a worktree, whose repository lies elsewhere", async () => {
    const main = newFolder();
    mkdirSync(main);
    git(main, "init", "-q");
    commit(main, "one");
    git(main, "remote", "add", "origin", "https://git.example/a.git");
    rmSync(own, { recursive: true });
    git(main, "worktree", "add", "-q", own);
    expect(await state()).toMatchObject({ hasGit: true, hasRemote: true });
  });
});
