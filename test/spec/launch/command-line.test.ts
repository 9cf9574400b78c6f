import { execFile } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { describe, expect, it } from "vitest";
import { runCommand, runPortico, startPortico } from "../../harness/portico-process.ts";

const LAUNCHER = join(import.meta.dirname, "../../../presets/cli/portico.mjs");
const COMMANDS = [
  ...[
    "start",
    "console",
    "token",
    "token issue",
    "token list",
    "token revoke",
    "user",
    "user export",
    "user erase",
    "attachments",
    "attachments list",
    "attachments remove",
    "grant",
    "grant issue",
    "mcp",
    "mcp login",
    "mcp logout",
    "mcp status",
    "config",
    "doctor",
    "env",
    "openapi",
    "asyncapi",
  ],
  ...["new", "new plugin", "new adapter", "new preset"],
  ...["", " check", " schema", " approve", " reject", " cancel"].map((name) => `workflow${name}`),
  "ask",
  ...["", " list", " approve", " reject", " consents", " revoke"].map((name) => `approvals${name}`),
];

describe("the portico command line", () => {
  it.each(["", ...COMMANDS])("portico %s --help explains it and exits 0", async (command) => {
    const words = command.split(" ").filter(Boolean);

    const { code, stdout, stderr } = await runCommand([...words, "--help"]);

    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toContain(`USAGE ${["portico", ...words].join(" ")}`);
  });

  it.each([["help"], ["help token issue"], ["token help"], ["help workflow check --help"]])(
    "portico %s explains what it names",
    async (line) => {
      const words = line.split(" ");
      const named = words.filter((word) => word !== "help" && word !== "--help");
      const [help, same] = [await runCommand(words), await runCommand([...named, "--help"])];
      expect(help).toEqual(same);
      expect(help.code).toBe(0);
    },
  );

  it("portico env prints the addresses and tokens of the running service, for a shell and as JSON", async () => {
    await using service = await startPortico();
    const shell = await promisify(execFile)("bash", ["-c", 'eval "$0"; env', (await service.run("env")).stdout]);
    const variables = JSON.parse((await service.run("env", "--json")).stdout) as Record<string, string>;
    expect(Object.keys(variables)).toEqual(["PROXY", "WORKFLOW", "AGENT", "AGENT_TOKEN", "WORKFLOW_TOKEN"]);
    for (const [name, value] of Object.entries(variables)) expect(shell.stdout).toContain(`${name}=${value}\n`);
    expect(variables["PROXY"]).toBe(new URL(service.url("proxy")).origin);
    const headers = { "x-agent-service-token": variables["AGENT_TOKEN"]! };
    expect((await fetch(`${variables["AGENT"]}/api/handshake`, { headers })).status).toBe(200);
    const { code, stdout, stderr } = await runCommand(["env"]);
    expect([code, stdout, stderr]).toEqual([69, "", expect.stringContaining("No service runs with the data directory")]);
  });

  it.each([
    [["strat"], 'Unknown command "strat"; did you mean "start"? (see portico --help)'],
    [["token", "isue"], 'Unknown command "isue"; did you mean "issue"? (see portico token --help)'],
    [["start", "--data-dri", "x"], "Unknown option --data-dri; did you mean --data-dir? (see portico start --help)"],
    [["start", "--json=yes"], "Option --json does not take a value (see portico start --help)"],
    [["start", "--config"], "Option --config needs a value (see portico start --help)"],
    [["start", "local", "proxy"], 'Unexpected argument "proxy" (see portico start --help)'],
    [["start", "locl"], 'There is no preset "locl"; did you mean "local"?'],
    [["grant", "issue"], "Option --workflow is required (see portico grant issue --help)"],
    [["workflow", "approve"], "Missing argument RUN (see portico workflow approve --help)"],
    [["workflow", "cancel", "x", "y"], 'Unexpected argument "y" (see portico workflow cancel --help)'],
    [["new", "plugin"], "Missing argument NAME (see portico new plugin --help)"],
    [["new", "plugn", "x"], 'Unknown command "plugn"; did you mean "plugin"? (see portico new --help)'],
    [["token", "issue"], "Option --provider is required (see portico token issue --help)"],
    [["token", "revoke"], "Give either a token's id or --all (see portico token revoke --help)"],
    [["openapi", "--surface", "x"], 'The preset "local" has no surface "x"; it has proxy and workflow and agent'],
  ])("%j is refused with one line and exit code 64", async (args, line) => {
    expect(await runCommand(args)).toEqual({ code: 64, stdout: "", stderr: `${line}\n` });
  });

  it("--version prints the version alone", async () => {
    expect(await runPortico(["--version"])).toEqual({
      code: 0,
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\S*\n$/),
      stderr: "",
    });
  });

  it("an old Node.js is told in one sentence what is needed, with exit code 69", async () => {
    const before = 'Object.defineProperty(process.versions, "node", { value: "20.20.2" })';

    expect(await runPortico(["start"], { before })).toEqual({
      code: 69,
      stdout: "",
      stderr: "Portico needs Node.js 22.19 or newer; this is 20.20.2.\n",
    });
  });

  it("a program that loads the check of Node.js before itself is told the same", async () => {
    const old = `data:text/javascript,${encodeURIComponent('Object.defineProperty(process.versions, "node", { value: "20.20.2" })')}`;
    const check = createRequire(import.meta.url).resolve("@portico/core/needed-node");
    const loading = (...preload: string[]) =>
      promisify(execFile)(process.execPath, [...preload, "--import", pathToFileURL(check).href, "-p", "1"]);

    await expect(loading("--import", old)).rejects.toMatchObject({
      code: 69,
      stdout: "",
      stderr: "Portico needs Node.js 22.19 or newer; this is 20.20.2.\n",
    });
    expect(await loading()).toEqual({ stdout: "1\n", stderr: "" });
  });

  it("a reader that closes the output early causes no error", async () => {
    const pipeline = `set -o pipefail; "${process.execPath}" "${LAUNCHER}" config --json | true`;

    expect(await promisify(execFile)("bash", ["-c", pipeline], { cwd: import.meta.dirname })).toEqual({ stdout: "", stderr: "" });
  });

  it("openapi prints the document of a surface, without making a data directory", async () => {
    const { code, stdout } = await runCommand(["openapi", "--surface", "agent"]);

    const document = JSON.parse(stdout) as { openapi: string; paths: Record<string, unknown> };
    expect(code).toBe(0);
    expect(document.openapi).toMatch(/^3\.1/);
    expect(Object.keys(document.paths)).toEqual(expect.arrayContaining(["/api/safe-tokens", "/healthz", "/readyz"]));
    expect(Object.keys(document.paths)).not.toContain("/v1/messages");
  });

  it("openapi of the workflow service says how its token is presented", async () => {
    const { code, stdout } = await runCommand(["openapi", "workflow"]);

    const document = JSON.parse(stdout) as any;
    expect(code).toBe(0);
    expect(Object.keys(document.paths)).toEqual(
      expect.arrayContaining(["/api/workflows", "/api/workflow/run", "/metrics", "/healthz", "/readyz"]),
    );
    expect(Object.values(document.components.securitySchemes)).toMatchObject([
      { in: "header", name: "X-Workflow-Service-Token" },
    ]);
  });
});
