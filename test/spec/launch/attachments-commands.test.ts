import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type PorticoProcess, runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";

// A test runs several commands, one after another.
vi.setConfig({ testTimeout: 90_000 });

const TOKENS = { owner: "owner-token-0123456789", member: "member-token-0123456789" };
const config = {
  agent: {
    tokens: [
      { token: TOKENS.owner, userId: "owner", role: "owner" },
      { token: TOKENS.member, userId: "ada", role: "member" },
    ],
  },
};
let folder: ReturnType<typeof temporaryFolder>;
let service: PorticoProcess;
beforeEach(async () => {
  folder = temporaryFolder();
  service = await startPortico({ cwd: folder.path, config });
});
afterEach(async () => {
  await service[Symbol.asyncDispose]();
  folder.remove();
});

const run = (...args: string[]) => runCommand(["attachments", ...args], { cwd: folder.path });
const json = async (...args: string[]) => {
  const { code, stdout, stderr } = await run(...args, "--json");
  expect([code, stderr]).toEqual([0, ""]);
  return JSON.parse(stdout);
};
const upload = async (holder: keyof typeof TOKENS, name: string): Promise<string> => {
  const form = new FormData();
  form.append("file", new Blob([`Content of ${name}`]), name);
  const headers = { "x-agent-service-token": TOKENS[holder] };
  const answer = await fetch(`${service.url("agent")}/api/attachments`, { method: "POST", headers, body: form });
  expect(answer.status).toBe(201);
  return (await answer.json()).attachmentId;
};
const statusOf = async (holder: keyof typeof TOKENS, id: string) => {
  const headers = { "x-agent-service-token": TOKENS[holder] };
  const answer = await fetch(`${service.url("agent")}/api/attachments/${id}`, { headers });
  await answer.arrayBuffer();
  return answer.status;
};
const files = () =>
  readdirSync(join(service.dataDir, "files", "attachments"), { recursive: true })
    .map(String)
    .filter((name) => name.includes("-"));

describe("portico attachments", () => {
  it("list shows the attachments of all users or one, for people and for programs", async () => {
    const [first, second] = [await upload("owner", "first.txt"), await upload("member", "second\u009b2J.txt")];
    expect(await json("list")).toEqual([
      expect.objectContaining({ attachmentId: first, userId: "owner", name: "first.txt", size: 20 }),
      expect.objectContaining({ attachmentId: second, userId: "ada" }),
    ]);
    expect((await json("list", "--user", "ada")).map(({ attachmentId }: any) => attachmentId)).toEqual([second]);
    expect(await json("list", "--older-than", "1h")).toEqual([]);
    const { stdout } = await run("list");
    expect(stdout).toMatch(/^ATTACHMENT ID +USER +BYTES +UPLOADED +LAST USED +NAME\n/);
    expect(stdout).toContain(first);
    expect(stdout).not.toContain("\u009b");
    expect((await run("list", "--user", "nobody")).stderr).toBe("There are no such attachments.\n");
  });

  it("remove takes effect at once beside a running service, and also without one", async () => {
    const [mine, ...hers] = [await upload("owner", "a"), await upload("member", "b"), await upload("member", "c")];
    expect(await json("remove", hers[0]!)).toEqual({ removed: [hers[0]], kept: [], bytes: 12 });
    expect([await statusOf("member", hers[0]!), await statusOf("member", hers[1]!)]).toEqual([404, 200]);
    expect(files()).toHaveLength(2);
    const again = await run("remove", hers[0]!);
    expect([again.code, again.stderr]).toEqual([1, "No such attachment has this id\n"]);
    const other = await run("remove", mine!, "--user", "ada");
    expect([other.code, await statusOf("owner", mine!)]).toEqual([1, 200]);
    expect(await json("remove", "--older-than", "1h")).toEqual({ removed: [], kept: [], bytes: 0 });
    await service.stop();
    const { code, stdout } = await run("remove", "--user", "ada");
    expect([code, stdout]).toEqual([0, "Removed 1 attachment (12 bytes).\n"]);
    expect((await json("list")).map(({ attachmentId }: any) => attachmentId)).toEqual([mine]);
    expect(files()).toEqual([expect.stringContaining(mine!)]);
  });

  it("remove refuses to remove everything by mistake, and what is no duration", async () => {
    await upload("owner", "a");
    const bare = await run("remove");
    expect([bare.code, bare.stderr]).toEqual([
      64,
      "Give an attachment's id, --user or --older-than (see portico attachments remove --help)\n",
    ]);
    for (const command of ["list", "remove"]) {
      const wrong = await run(command, "--older-than", "soon");
      expect([wrong.code, wrong.stderr]).toEqual([64, "Option --older-than must be a duration such as 12h or 30d\n"]);
    }
    expect(await json("list")).toHaveLength(1);
  });

  it("list makes no data directory where there is none", async () => {
    const empty = temporaryFolder();
    try {
      const { code, stdout } = await runCommand(["attachments", "list", "--json"], { cwd: empty.path });
      expect([code, JSON.parse(stdout)]).toEqual([0, []]);
      expect(readdirSync(empty.path)).toEqual([]);
    } finally {
      empty.remove();
    }
  });
});
