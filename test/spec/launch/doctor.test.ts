import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { NOTIFICATION_SECRET, startNotificationReceiver } from "../../harness/notification-receiver.ts";
import { runCommand, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { freePort } from "../../harness/ports.ts";

interface Finding {
  readonly about: string;
  readonly isWrong: boolean;
  readonly message: string;
  readonly fix?: string;
}

describe("portico doctor", () => {
  const models = { object: "list", data: [{ id: "m-large", object: "model" }] };
  let upstream: Server;
  let port: number;
  beforeAll(async () => {
    upstream = createServer((request, response) => {
      response.statusCode = request.headers.authorization === "Bearer sk-right" ? 200 : 401;
      response.setHeader("content-type", "application/json").end(JSON.stringify(models));
    });
    await new Promise<void>((resolve) => upstream.listen(0, "127.0.0.1", resolve));
    ({ port } = upstream.address() as AddressInfo);
  });
  afterAll(() => {
    upstream.closeAllConnections();
    upstream.close();
  });

  it("says whether the address of notifications answers, and never names it", async () => {
    const folder = temporaryFolder();
    try {
      const asked = async (url: string, ...flags: string[]) => {
        const env = {
          PORTICO_NOTIFICATIONS_URL: url,
          PORTICO_NOTIFICATIONS_SECRET: NOTIFICATION_SECRET,
        };
        const { stdout } = await runCommand(["doctor", "--json", ...flags], { cwd: folder.path, env });
        expect(stdout).not.toContain("in-the-address");
        return (JSON.parse(stdout) as Finding[]).filter(({ about }) => about === "notifications");
      };
      expect(await asked(`http://127.0.0.1:${port}/?token=in-the-address`)).toMatchObject([
        { isWrong: false, message: "the address answers (401 to HEAD)" },
      ]);
      expect(await asked(`http://127.0.0.1:${port}/?token=in-the-address`, "--call")).toMatchObject([
        { isWrong: true, message: "the receiver does not accept a notification (401)" },
      ]);
      await using receiver = await startNotificationReceiver();
      expect(await asked(receiver.url, "--call")).toMatchObject([{ isWrong: false }]);
      expect(receiver.received).toMatchObject([{ isSigned: true, body: { type: "test", data: {} } }]);
      expect(await asked(`http://127.0.0.1:${await freePort()}/?token=in-the-address`)).toMatchObject([
        {
          isWrong: true,
          message: "the address does not answer (ECONNREFUSED)",
          fix: "start the receiver, or correct notifications.url or notifications.secret",
        },
      ]);
    } finally {
      folder.remove();
    }
  });

  it("finds what is wrong with files, environment, providers and ports, each with its fix, and exits 1; no secret is shown", async () => {
    const folder = temporaryFolder();
    try {
      const provider = { protocol: "chat-completions", baseUrl: `http://127.0.0.1:${port}/v1`, models: ["m-large", "m-small"] };
      const config = {
        providers: [
          { ...provider, id: "refused", credential: "sk-wrong" },
          { ...provider, id: "half", credential: "sk-right" },
          { ...provider, id: "away", baseUrl: "http://127.0.0.1:9/v1" },
        ],
        proxy: { listen: { port } },
      };
      writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify(config));
      chmodSync(join(folder.path, "portico.config.json"), 0o644);
      mkdirSync(join(folder.path, ".portico"));
      chmodSync(join(folder.path, ".portico"), 0o755);

      const { code, stdout, stderr } = await runCommand(["doctor", "--json"], {
        cwd: folder.path,
        // The variable of a list with entries is one of a setting, too.
        env: {
          PORTICO_PROXY_PROT: "1",
          PORTICO_TOKEN: "x",
          PORTICO_AGENT_TOKENS: '[{"token":"owner-token-0123456789","userId":"o","role":"owner"}]',
        },
      });

      const findings = JSON.parse(stdout) as Finding[];
      const of = (about: string) => findings.filter((finding) => finding.about === about && finding.isWrong);
      expect([code, stderr]).toEqual([1, ""]);
      expect(findings.filter(({ isWrong, fix }) => isWrong && !fix)).toEqual([]);
      expect(of("configuration")[0]?.message).toContain(
        "contains secrets (providers.0.credential, providers.1.credential) and other users can read it",
      );
      expect(of("environment").map(({ message, fix }) => [message.split(" ")[0], fix])).toEqual([
        ["PORTICO_PROXY_PROT", 'export PORTICO_PROXY_PORT="$PORTICO_PROXY_PROT"; unset PORTICO_PROXY_PROT'],
        // Every variable of ours has the first word; that makes none near.
        ["PORTICO_TOKEN", "unset PORTICO_TOKEN"],
      ]);
      expect(of("data directory")[0]?.fix).toBe(`chmod 700 ${join(folder.path, ".portico")}`);
      expect(of("provider refused")[0]).toMatchObject({
        message: expect.stringContaining("401"),
        fix: "correct the key in its `credential`",
      });
      expect(of("provider half")[0]?.message).toBe("answers, but its list of models does not contain m-small");
      expect(of("provider away")[0]?.fix).toContain("baseUrl");
      expect(of("port of proxy")[0]?.message).toBe(`${port} on 127.0.0.1 is already in use`);
      expect(stdout).not.toContain("sk-");
    } finally {
      folder.remove();
    }
  });

  it("finds what is wrong with agents, their tools, skills and MCP servers, missing folders, and limits that can never be reached", async () => {
    const folder = temporaryFolder();
    try {
      const inFolder = (path: string) => join(folder.path, path);
      const server = join(import.meta.dirname, "../../conformance/processes/mcp-server.ts");
      const config = {
        workflow: { definitionsDir: "flows", files: { maxBytes: 2000, maxRunBytes: 1000 } },
        limits: { instance: { tokensPerDay: 100 }, user: { tokensPerDay: 200, moneyPerDay: 1 } },
        mcpServers: {
          works: { command: process.execPath, args: [server] },
          gone: { command: "no-such-program-of-portico" },
          dies: { command: "false" },
          joined: { command: "echo hello" },
          refuses: { url: `http://127.0.0.1:${port}/mcp` },
          away: { url: "http://127.0.0.1:9/mcp" },
          lost: { command: process.execPath, cwd: "no $where" },
        },
      };
      writeFileSync(inFolder("portico.config.json"), JSON.stringify(config));
      const deploy = (id: string, text: string) => {
        mkdirSync(inFolder(`agents/${id}`), { recursive: true });
        writeFileSync(inFolder(`agents/${id}/agent.json`), text);
      };
      deploy("typo", '{\n  "name": "Typo",\n  "temperature": 9\n}\n');
      deploy("comma", '{\n  "name": "Comma",\n}\n');
      const tools = ["works/greet", "works/gret", "gone/any", "other/any", "SendUserMesage", "RunWorkflow"];
      const skills = ["skills/none/", "skills/colon"];
      deploy("tools", JSON.stringify({ name: "Tools", tools, skills, limits: { tokensPerDay: 500 } }, undefined, 2));
      mkdirSync(inFolder("agents/tools/skills/colon"), { recursive: true });
      const head = "---\nname: colon\ndescription: Reads bills: all of them.\n---\n";
      writeFileSync(inFolder("agents/tools/skills/colon/SKILL.md"), head);

      const { code, stdout } = await runCommand(["doctor", "--json"], { cwd: folder.path });

      const findings = JSON.parse(stdout) as Finding[];
      const of = (about: string) => findings.filter((each) => each.about === about).map(({ message, fix }) => [message, fix]);
      expect(code).toBe(1);
      expect(findings.filter(({ isWrong, fix }) => isWrong && !fix)).toEqual([]);
      expect(of("agent typo")).toEqual([
        [
          "agent.json:3:3: $.temperature: Expected at most 2",
          expect.stringContaining(`correct line 3 of ${inFolder("agents/typo/agent.json")}`),
        ],
      ]);
      expect(of("agent comma")[0]![0]).toBe("agent.json:3:1: $: The text is not JSON");
      expect(of("agent tools")).toEqual([
        ["agent.json:5:5: $.tools[1]: works/gret: No source has a tool with this ID", 'write "works/greet"'],
        [
          "agent.json:6:5: $.tools[2]: gone/any: The MCP server cannot be reached (ENOENT)",
          'mend the MCP server "gone": its own line says how',
        ],
        [
          "agent.json:7:5: $.tools[3]: other/any: No source has a tool with this ID",
          `add the server "other" to mcpServers, or remove the tool from the agent's "tools"`,
        ],
        ["agent.json:8:5: $.tools[4]: SendUserMesage: No source has a tool with this ID", 'write "SendUserMessage"'],
        [
          expect.stringMatching(/^agent\.json:\d+:5: \$\.skills\[0\]: skills\/none\/?: It has no SKILL\.md/),
          expect.stringContaining(inFolder("agents/tools/skills/none/SKILL.md")),
        ],
        [
          expect.stringMatching(
            /^agent\.json:\d+:5: \$\.skills\[1\]: skills\/colon: .*a text with a colon and a blank needs quotes$/,
          ),
          expect.stringContaining(inFolder("agents/tools/skills/colon/SKILL.md")),
        ],
        ["limits.tokensPerDay (500) can never be reached: limits.instance.tokensPerDay is 100", undefined],
      ]);
      expect(of("MCP server works")[0]![0]).toMatch(/^answers, and lists \d+ tools$/);
      expect(of("MCP server gone")).toEqual([
        [
          "its program does not exist",
          "command -v no-such-program-of-portico; install the program, or correct mcpServers.gone.command",
        ],
      ]);
      expect(of("MCP server dies")[0]![0]).toBe("its program ended before it answered");
      expect(of("MCP server joined")[0]![1]).toContain("mcpServers.joined.args");
      expect(of("MCP server refuses")[0]).toEqual(["refuses the credential (401)", "correct mcpServers.refuses.headers"]);
      expect(of("MCP server away")[0]![1]).toContain("curl -i http://127.0.0.1:9");
      expect(of("MCP server lost")[0]).toEqual([
        `the folder ${inFolder("no $where")} does not exist`,
        `mkdir -p '${inFolder("no $where")}', or correct mcpServers.lost.cwd`,
      ]);
      expect(of("workflow.definitionsDir")[0]![1]).toContain(`mkdir -p ${inFolder("flows")}`);
      expect(of("limits").map(([message]) => message)).toEqual([
        "limits.user.tokensPerDay (200) can never be reached: limits.instance.tokensPerDay is 100",
        'limits.user.moneyPerDay (1) can never be reached: there are no prices; set "prices"',
        "workflow.files.maxBytes (2000) can never be reached: workflow.files.maxRunBytes is 1000",
      ]);
    } finally {
      folder.remove();
    }
  });

  it("a configuration that cannot be read is a finding for each of its problems", async () => {
    const { code, stdout } = await runCommand(["doctor"], { env: { PORTICO_PROXY_PORT: "many", PORTICO_AGENT_PORT: "few" } });

    expect(code).toBe(1);
    expect(stdout).toContain("WRONG  configuration: proxy.listen.port: expected a whole number");
    expect(stdout).toContain("WRONG  configuration: agent.listen.port: expected a whole number");
    expect(stdout).toContain("2 of 2 checks found a problem.");
  });

  it("an instance key that does not open the stored values is found, before a start fails with 69", async () => {
    const folder = temporaryFolder();
    const dataDir = join(folder.path, ".portico");
    mkdirSync(dataDir, { mode: 0o700 });
    writeFileSync(join(dataDir, "credentials.json"), '{"instanceKeyId":"AAAAAAAAAAAAAAAA"}', { mode: 0o600 });
    const around = { cwd: folder.path, env: { PORTICO_INSTANCE_KEY: Buffer.alloc(32, 7).toString("base64url") } };

    const { code, stdout } = await runCommand(["doctor"], around);
    expect(stdout).toContain("WRONG  instance key: Values of this instance are sealed under another instance key");
    expect(stdout).not.toContain(around.env.PORTICO_INSTANCE_KEY);
    expect(code).toBe(1);
    const started = await runCommand(["start"], around);
    expect([started.code, started.stderr]).toEqual([69, expect.stringContaining("sealed under another instance key")]);
    folder.remove();
  });

  it("beside a running service with a fixed port nothing is wrong, and it exits 0", async () => {
    const free = await freePort();
    await using service = await startPortico({ env: { PORTICO_PROXY_PORT: String(free) } });

    const { code, stdout } = await service.run("doctor");

    expect(stdout).toContain(`ok     port of proxy: ${free} is in use by this instance's own service`);
    expect(stdout).toContain("ok     service: running on this data directory");
    expect(stdout).toContain("No problems found.");
    expect(code).toBe(0);
  });
});
