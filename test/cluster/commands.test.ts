import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { rootCertificates } from "node:tls";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CLUSTER_OWNER, type ClusterPlace, clusterPlace } from "../harness/cluster.ts";
import { runCommand, startPortico } from "../harness/portico-process.ts";

const first = await clusterPlace();
if (!first) console.warn("Tests of clusters are skipped: no PostgreSQL or no Redis server answers");
await first?.remove();

describe.skipIf(!first)("the command line in a cluster", () => {
  let place: ClusterPlace;
  beforeEach(async () => {
    place = (await clusterPlace())!;
  });
  afterEach(() => place.remove());
  const write = (name: string, content: object) => {
    const path = join(place.folder, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, JSON.stringify(content));
  };
  const migrated = async () => expect((await place.run("migrate")).code).toBe(0);

  it("migrate makes the schema, and may be run again", async () => {
    const made = { code: 0, stdout: "The schema portico has the format of this version.\n", stderr: "" };
    expect(await place.run("migrate")).toEqual(made);
    expect(await place.run("migrate")).toEqual(made);
  });

  it("migrate makes the tables and indexes of all collections that the preset uses, and keeps those of other plugins", async () => {
    await migrated();
    const made = async () =>
      (
        await place.database.query(`
          SELECT tablename || ' ' || indexname AS name FROM pg_indexes WHERE schemaname = 'portico'
          UNION ALL SELECT table_name || '.' || column_name FROM information_schema.columns WHERE table_schema = 'portico'
          ORDER BY 1`)
      ).map(({ name }) => name as string);
    const before = await made();
    expect(before.filter((name) => name.endsWith(".version")).length).toBeGreaterThan(15);
    await using service = await startPortico({ cwd: place.folder, args: ["cluster"], env: place.env });
    const headers = { "x-agent-service-token": CLUSTER_OWNER };
    expect((await fetch(`${service.url("agent")}/api/conversations`, { headers })).status).toBe(200);
    expect(await made()).toEqual(before);

    await place.database.query(`CREATE TABLE portico."own-notes" (id text COLLATE "C" PRIMARY KEY, version bigint, value text)`);
    await migrated();
    expect((await made()).filter((name) => !name.startsWith("own-notes"))).toEqual(before);
  });

  it("attachments are listed and removed in the database and the bucket, and running processes notice at once", async () => {
    await migrated();
    await using service = await startPortico({ cwd: place.folder, args: ["cluster"], env: place.env });
    const headers = { "x-agent-service-token": CLUSTER_OWNER };
    const form = new FormData();
    form.append("file", new Blob(["Tea at five"]), "note.txt");
    const url = `${service.url("agent")}/api/attachments`;
    const { attachmentId } = await (await fetch(url, { method: "POST", headers, body: form })).json();
    const listed = async () => JSON.parse((await place.run("attachments", "list", "--json")).stdout);
    expect(await listed()).toMatchObject([{ attachmentId, name: "note.txt", size: 11 }]);
    expect((await place.run("attachments", "remove", attachmentId)).stdout).toBe("Removed 1 attachment (11 bytes).\n");
    expect((await fetch(`${url}/${attachmentId}`, { headers })).status).toBe(404);
    expect(await listed()).toEqual([]);
  });

  it("commands and starts refuse a schema that is not made, and say what to run", async () => {
    for (const args of [
      ["token", "list"],
      ["documents", "list"],
      ["start", "cluster", "--json"],
    ]) {
      const { code, stdout, stderr } = await place.run(...args);
      expect([args, stdout]).toEqual([args, ""]);
      expect(stderr).toMatch(/portico migrate/);
      expect(code).toBe(78);
    }
  });

  it("token issues, lists and revokes safe tokens of all processes", async () => {
    await migrated();
    const issued = await place.run("token", "issue", "--provider", "demo", "--label", "mine");
    expect(issued).toMatchObject({ code: 0, stderr: "" });
    expect(issued.stdout).toMatch(/^service_\S+\n$/);
    const [token] = JSON.parse((await place.run("token", "list", "--json")).stdout) as { tokenId: string; label: string }[];
    expect(token).toMatchObject({ providerId: "demo", label: "mine" });
    expect((await place.run("token", "revoke", token!.tokenId)).stdout).toBe("Revoked 1 safe token.\n");
    expect((await place.run("token", "list", "--json")).stdout).toBe("[]\n");
  });

  it("grant issues grants with the key that all processes have", async () => {
    // The audit records each grant.
    await migrated();
    const { code, stdout } = await place.run("grant", "issue", "--workflow", "greet");
    expect(code).toBe(0);
    expect(stdout).toMatch(/^grant_\S+\n$/);
  });

  it("documents push, list and pull copy agents and definitions, and never overwrite a change of the other side", async () => {
    await migrated();
    write("mine/agents/helper/agent.json", { name: "Helper" });
    write("mine/workflows/support/greet.json", { nodes: { a: { type: "transform", with: { value: 1 } } } });
    write("mine/agents/helper/notes.txt", {});
    const names = ["agents/helper/agent.json", "workflows/support/greet.json"];
    const pushed = await place.run("documents", "push", "mine", "--json");
    expect(JSON.parse(pushed.stdout)).toEqual({ written: names, removed: [], unchanged: [], leftOut: [] });
    expect(JSON.parse((await place.run("documents", "push", "mine", "--json")).stdout)).toMatchObject({ unchanged: names });
    expect((await place.run("documents", "list")).stdout).toBe(`${names.join("\n")}\n`);
    const findings = JSON.parse((await place.run("doctor", "--json")).stdout) as { about: string; message: string }[];
    expect(findings.find(({ about }) => about === "workflows")?.message).toBe("1 definition is valid");
    expect((await place.run("grant", "issue", "--workflow", "greet")).stderr).toBe("");
    expect((await place.run("grant", "issue", "--workflow", "none")).stderr).toContain("in the database of the cluster");

    expect((await place.run("documents", "pull", "theirs")).code).toBe(0);
    write("theirs/agents/helper/agent.json", { name: "Changed there" });
    expect((await place.run("documents", "push", "theirs")).code).toBe(0);
    write("mine/agents/helper/agent.json", { name: "Changed here" });
    const refused = await place.run("documents", "push", "mine");
    expect([refused.code, refused.stdout]).toEqual([1, ""]);
    expect(refused.stderr).toContain("agents/helper/agent.json was changed in the database");
    const pulled = await place.run("documents", "pull", "mine");
    expect(pulled.stderr).toContain("agents/helper/agent.json was changed in the folder");
    expect(JSON.parse(readFileSync(join(place.folder, "mine/agents/helper/agent.json"), "utf8"))).toEqual({
      name: "Changed here",
    });

    expect((await place.run("documents", "push", "mine", "--force")).code).toBe(0);
    write("empty/agents/other/agent.json", { name: "Other" });
    const pruned = await place.run("documents", "push", "empty", "--prune", "--force", "--json");
    expect(JSON.parse(pruned.stdout)).toMatchObject({ written: ["agents/other/agent.json"], removed: names, unchanged: [] });
  });

  it("documents push and pull copy the skills of agents, remove none but those, and name the files that are no text", async () => {
    await migrated();
    const skill = "helper/skills/read-bills";
    write("mine/agents/helper/agent.json", { name: "Helper", skills: ["skills/read-bills"] });
    const text = "---\nname: read-bills\ndescription: Reads bills.\n---\nRead them.\n";
    mkdirSync(join(place.folder, `mine/agents/${skill}`), { recursive: true });
    writeFileSync(join(place.folder, `mine/agents/${skill}/SKILL.md`), text);
    write(`mine/agents/${skill}/references/more.md`, { more: "text" });
    write("mine/agents/helper/skills/unlisted/SKILL.md", {});
    write("mine/agents/helper/work/own/notes.md", {});
    writeFileSync(join(place.folder, `mine/agents/${skill}/logo.png`), new Uint8Array([0xff, 0xfe, 0xfd]));
    const names = ["agent.json", "skills/read-bills/SKILL.md", "skills/read-bills/references/more.md"].map(
      (name) => `agents/helper/${name}`,
    );
    const pushed = await place.run("documents", "push", "mine", "--json");
    const leftOut = [`agents/${skill}/logo.png`];
    expect(JSON.parse(pushed.stdout)).toEqual({ written: names, removed: [], unchanged: [], leftOut });
    expect(pushed.stderr).toContain(`${leftOut[0]} is not copied`);
    await using service = await startPortico({ cwd: place.folder, args: ["cluster"], env: place.env });
    const headers = { "x-agent-service-token": CLUSTER_OWNER };
    const { agents } = await (await fetch(`${service.url("agent")}/api/agents`, { headers })).json();
    expect(agents).toMatchObject([{ id: "helper", skillsCount: 1 }]);

    expect((await place.run("documents", "pull", "theirs")).code).toBe(0);
    expect(readFileSync(join(place.folder, `theirs/agents/${skill}/SKILL.md`), "utf8")).toBe(text);
    write("theirs/agents/helper/work/own/notes.md", {});
    write(`theirs/agents/${skill}/references/own.md`, {});
    const pruned = await place.run("documents", "pull", "theirs", "--prune", "--force", "--json");
    expect(JSON.parse(pruned.stdout)).toMatchObject({ written: [], removed: [`agents/${skill}/references/own.md`] });
    expect(readFileSync(join(place.folder, "theirs/agents/helper/work/own/notes.md"), "utf8")).toBe("{}");
  });

  it("documents of folders, and of no cluster, are refused with exit code 78", async () => {
    const folders = await place.run("documents", "list", "--config", configOf({ cluster: { documents: "directory" } }));
    expect([folders.code, folders.stderr]).toEqual([78, expect.stringContaining('cluster.documents is "directory"')]);
  });

  it("doctor checks the servers, the schema, the key and the place of blobs, each with a fix", async () => {
    const before = await place.run("doctor", "--json");
    const wrongOf = (stdout: string) =>
      (JSON.parse(stdout) as { about: string; isWrong: boolean; fix?: string }[]).filter((each) => each.isWrong);
    expect(wrongOf(before.stdout)).toMatchObject([{ about: "schema", fix: expect.stringContaining("portico migrate") }]);
    await migrated();
    const after = await place.run("doctor", "--json");
    expect([after.code, wrongOf(after.stdout)]).toEqual([0, []]);
    const about = (JSON.parse(after.stdout) as { about: string }[]).map((each) => each.about);
    expect(about).toEqual(expect.arrayContaining(["PostgreSQL", "Redis", "schema", "instance key", "blobs"]));
    expect(about).not.toContain("data directory");

    const away = {
      ...place.env,
      PORTICO_REDIS_URL: "redis://:hidden-password@127.0.0.1:1",
      PORTICO_POSTGRES_URL: "postgres://x:hidden-password@127.0.0.1:1/none",
    };
    const { code, stdout } = await runCommand(["doctor", "--json"], { cwd: place.folder, env: away });
    expect([code, wrongOf(stdout).map((each) => each.about)]).toEqual([1, ["PostgreSQL", "Redis"]]);
    expect(stdout).not.toContain("hidden-password");
  });

  it.each([
    ["cluster.postgres.url", { PORTICO_POSTGRES_URL: "mysql://SECRET@host/db" }, {}],
    [
      "cluster.postgres.url",
      { PORTICO_POSTGRES_URL: "postgres://u:SECRET@h/d?sslmode=disable" },
      { tls: { ca: rootCertificates[0] } },
    ],
    ["cluster.postgres.schema", { PORTICO_POSTGRES_SCHEMA: "Not-A-Name" }, {}],
    ["cluster.redis.url", { PORTICO_REDIS_URL: "http://u:SECRET@host" }, {}],
    ["cluster.redis.prefix", { PORTICO_REDIS_PREFIX: "a b" }, {}],
    ["cluster.tls", {}, { tls: { cert: "SECRET" } }],
    [
      "cluster.blobs.s3",
      {},
      { blobs: { s3: { endpoint: "ftp://SECRET@h", bucket: "b", accessKeyId: "k", secretAccessKey: "s" } } },
    ],
  ])("an invalid %s is a line with exit code 78, and shows no secret (%#)", async (key, env, cluster) => {
    const path = configOf({ cluster });
    const { PORTICO_CLUSTER_BLOBS_DIR: blobs, ...rest } = place.env;
    const all = { ...rest, ...("blobs" in cluster ? {} : { PORTICO_CLUSTER_BLOBS_DIR: blobs! }), ...env };
    for (const args of [
      ["start", "cluster"],
      ["token", "list"],
    ]) {
      const { code, stderr } = await runCommand([...args, "--config", path], { cwd: place.folder, env: all });
      expect([args, code, stderr.split(":")[0]]).toEqual([args, 78, key]);
      expect(stderr.trimEnd().split("\n")).toHaveLength(1);
      expect(stderr).not.toContain("SECRET");
    }
  });

  it("another instance key than the first one is refused with a line", async () => {
    await migrated();
    await place.run("token", "list");
    const other = { ...place.env, PORTICO_INSTANCE_KEY: Buffer.alloc(32, 9).toString("base64url") };
    const { code, stderr } = await runCommand(["token", "list"], { cwd: place.folder, env: other });
    expect(code).toBe(78);
    expect(stderr).toMatch(/key/);
    expect(stderr.trimEnd().split("\n")).toHaveLength(1);
  });

  function configOf(config: object): string {
    const path = join(place.folder, "other.config.json");
    writeFileSync(path, JSON.stringify(config));
    return path;
  }
});
