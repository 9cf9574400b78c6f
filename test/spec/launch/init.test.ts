import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { outsideWorkspace } from "../../harness/outside-workspace.ts";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { root } from "../../rooms/repository.ts";

/** The folders of these tests have no Portico that npx could find. */
const COMMAND = `node ${join(root, "presets/cli/portico.mjs")}`;
const CREATED = [".gitignore", "agents/helper/agent.json", "portico.config.yaml", "workflows/greet.yaml"];

describe("portico init", () => {
  let folder: ReturnType<typeof temporaryFolder>;
  beforeEach(() => {
    folder = temporaryFolder();
  });
  afterEach(() => folder.remove());
  const init = (...args: readonly string[]) => runCommand(["init", ...args], { cwd: folder.path });

  it("creates a service that starts, with an agent and a workflow that work", async () => {
    const { code, stdout, stderr } = await init();
    expect([code, stderr]).toEqual([0, ""]);
    for (const file of CREATED) expect(stdout).toContain(`  ${file}\n`);
    expect(stdout.endsWith(`\nNext:\n\n  ${COMMAND} start\n`)).toBe(true);

    await using service = await startPortico({ cwd: folder.path });
    const { agentServiceToken } = JSON.parse(service.read("credentials.json")) as { agentServiceToken: string };
    const agents = await fetch(`${service.url("agent")}/api/agents`, {
      headers: { "x-agent-service-token": agentServiceToken },
    });
    const {
      agents: [helper],
    } = (await agents.json()) as { agents: object[] };
    expect(helper).toMatchObject({ id: "helper", name: "Helper" });
    expect(helper).not.toHaveProperty("metadataError");

    const ran = await runCommand(["workflow", "start", "greet", "--param", "name=Ada", "--follow"], { cwd: folder.path });
    expect([ran.code, ran.stderr]).toEqual([0, ""]);
    const checked = await runCommand(["workflow", "check", "workflows", "--strict"], { cwd: folder.path });
    expect([checked.code, checked.stderr]).toEqual([0, ""]);
  });

  it("explains settings that can be used as they are written", async () => {
    await init();
    const file = join(folder.path, "portico.config.yaml");
    const [head = "", ...groups] = readFileSync(file, "utf8").split("\n\n");
    const settings = groups.map((group) => group.replaceAll(/^##.*\n/gm, "").replaceAll(/^# /gm, ""));
    expect(groups.every((group) => group.startsWith("## "))).toBe(true);
    writeFileSync(file, `${head}\n${settings.join("\n")}`);

    const env = { MAIN_KEY: "sk-0123456789", OWNER_TOKEN: "owner-0123456789", WORKFLOW_SERVICE_TOKEN: "flow-0123456789" };
    const { code, stdout, stderr } = await runCommand(["config", "--json"], { cwd: folder.path, env });
    expect([code, stderr]).toEqual([0, ""]);
    for (const key of ["proxy.listen.port", "agent.publicUrl", "workflow.keepRuns", "mcpServers.files.args"])
      expect(stdout).toContain(key);
  });

  it("leaves existing files as they are, and counts a configuration file of any supported name", async () => {
    writeFileSync(join(folder.path, "portico.config.json"), "{}");
    mkdirSync(join(folder.path, "workflows"));
    writeFileSync(join(folder.path, "workflows/greet.yaml"), "mine");
    const { code, stdout } = await init("--json");
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      folder: folder.path,
      files: [".gitignore", "agents/helper/agent.json"],
      kept: ["portico.config.json", "workflows/greet.yaml"],
      next: [`${COMMAND} start`],
    });
    expect(readFileSync(join(folder.path, "workflows/greet.yaml"), "utf8")).toBe("mine");
    expect(existsSync(join(folder.path, "portico.config.yaml"))).toBe(false);

    const again = await init();
    expect(again.stdout).not.toContain("Created");
    expect(again.stdout).toContain("Left as they are:\n\n  .gitignore\n");
  });

  it("creates the named folder", async () => {
    const { code, stdout } = await init("my service");
    expect(code).toBe(0);
    expect(stdout).toContain(`Next:\n\n  cd 'my service'\n  ${COMMAND} start\n`);
    for (const file of CREATED) expect(existsSync(join(folder.path, "my service", file)), file).toBe(true);
  });

  it("says npx only where npx finds an installed copy, because it would download another package", async () => {
    const outside = outsideWorkspace(["portico"]);
    try {
      mkdirSync(join(outside.path, "node_modules/.bin"));
      writeFileSync(join(outside.path, "node_modules/.bin/portico"), "");
      const { stdout } = await runCommand(["init", "mine"], { cwd: outside.path });
      expect(stdout).toContain("Next:\n\n  cd mine\n  npx portico start\n");
    } finally {
      outside.remove();
    }
  });

  it("ends with one line and exit code 73 if the folder cannot be written", async () => {
    writeFileSync(join(folder.path, "taken"), "");
    const { code, stderr } = await init("taken");
    expect([code, stderr]).toEqual([73, "The folder taken cannot be written (EEXIST)\n"]);
  });
});
