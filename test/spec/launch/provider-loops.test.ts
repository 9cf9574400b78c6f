import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { startFakeUpstream } from "../../harness/fake-upstream.ts";
import { runCommand, runPortico, startPortico, temporaryFolder } from "../../harness/portico-process.ts";
import { freePort } from "../../harness/ports.ts";

const FOREIGN = "service_of-another-instance-0123456789abcdefghij";

/** A folder with this configuration, for several commands. */
function folderWith(config: unknown) {
  const folder = temporaryFolder();
  const write = (changed: unknown) =>
    writeFileSync(join(folder.path, "portico.config.json"), JSON.stringify(changed), { mode: 0o600 });
  write(config);
  return { cwd: folder.path, write, [Symbol.dispose]: folder.remove };
}

describe("a provider that is this instance itself is refused (open points 2)", () => {
  it.each([
    ["a port that a setting fixes", (port: number) => ({ proxy: { listen: { port } } }), () => ""],
    ["a port that the system chose", () => ({}), (port: number) => choosing(port)],
  ])("by its address, at the start, on %s: exit 78 and a line that says what to do", async (_name, settings, before) => {
    const port = await freePort();
    const providers = ["http://localhost", "http://0.0.0.0", "http://127.1"].map((origin, at) => ({
      id: `own-${at}`,
      protocol: "messages",
      baseUrl: `${origin}:${port}/v1`,
    }));
    using folder = folderWith({
      ...settings(port),
      providers: [...providers, { ...providers[0], id: "other", baseUrl: "http://127.0.0.2/v1" }],
    });
    const { code, stdout, stderr } = await runPortico(["start", "proxy", "--json"], { cwd: folder.cwd, before: before(port) });
    expect([code, stdout]).toEqual([78, ""]);
    for (const { id, baseUrl } of providers)
      expect(stderr).toContain(
        `Provider "${id}": its address ${baseUrl} is this instance's own proxy, so that every call would come back; set \`baseUrl\``,
      );
    expect(stderr).not.toContain('"other"');
  });

  it("where the variables that lead programs to this proxy made it a provider", async () => {
    const port = await freePort();
    const env = { PORTICO_AUTO_PROVIDERS: "true", ANTHROPIC_BASE_URL: `http://127.0.0.1:${port}`, ANTHROPIC_API_KEY: "sk-any" };
    using folder = folderWith({ proxy: { listen: { port } } });
    const { code, stderr } = await runCommand(["start", "proxy", "--json"], { cwd: folder.cwd, env });
    expect(code).toBe(78);
    expect(stderr).toContain('Provider "anthropic" (found: environment variable ANTHROPIC_API_KEY)');
    expect(stderr).toContain("unset the environment variables");
  });

  it("by its key, at the start and by doctor; another instance's safe token is allowed, with a warning", async () => {
    await using upstream = await startFakeUpstream();
    using folder = folderWith({});
    const issued = await runCommand(["token", "issue", "--provider", "demo"], { cwd: folder.cwd });
    const token = issued.stdout.trim();
    const provider = { protocol: "messages", baseUrl: upstream.baseUrl, models: ["echo-large"] };
    const foreign = { ...provider, id: "foreign", credential: FOREIGN };
    const port = await freePort();
    const config = {
      providers: [
        { ...provider, id: "own-safe-token", credential: token },
        { ...provider, id: "own-header", headers: { authorization: `Bearer ${token}` } },
        { ...provider, id: "own-agent-token", credential: "hunter2" },
        { ...provider, id: "own-address", baseUrl: `http://localhost:${port}/v1` },
        { ...provider, id: "own-public-url", baseUrl: "https://models.example/portico/v1" },
        foreign,
      ],
      agent: { tokens: [{ token: "hunter2", userId: "ann", role: "owner" }] },
      proxy: { listen: { port }, publicUrl: "https://models.example/portico" },
    };
    folder.write(config);

    const started = await runCommand(["start", "proxy", "--json"], { cwd: folder.cwd });
    expect([started.code, started.stdout]).toEqual([78, ""]);
    for (const id of ["own-safe-token", "own-header"])
      expect(started.stderr).toContain(`Provider "${id}": its key is a safe token of this instance`);
    expect(started.stderr).toContain('Provider "own-agent-token": its key is a token of this instance\'s agent service');

    const doctor = await runCommand(["doctor", "--json"], { cwd: folder.cwd });
    const findings = JSON.parse(doctor.stdout) as { about: string; isWrong: boolean; isWarning?: true; fix?: string }[];
    const wrong = findings.filter(({ about, isWrong }) => isWrong && about.startsWith("provider "));
    expect(wrong.map(({ about }) => about)).toEqual(
      ["own-safe-token", "own-header", "own-agent-token", "own-address", "own-public-url"].map((id) => `provider ${id}`),
    );
    expect(wrong.filter(({ fix }) => !fix)).toEqual([]);
    expect(findings.filter(({ isWarning }) => isWarning).map(({ about }) => about)).toEqual(["provider foreign"]);
    expect(doctor.code).toBe(1);

    folder.write({ providers: [foreign] });
    await using service = await startPortico({ cwd: folder.cwd, args: ["proxy"], hasOwnProcess: true });
    await expect.poll(service.stderr).toMatch(/"level":"warn".*"provider":"foreign".*another Portico instance/);
    const shown = started.stderr + doctor.stdout + service.stderr();
    for (const secret of [token, FOREIGN, "hunter2"]) expect(shown).not.toContain(secret);
  });
});

/** As if the system had chosen this port for the first listener that leaves it the choice. */
function choosing(port: number): string {
  return `
    import net from "node:net";
    const { listen } = net.Server.prototype;
    net.Server.prototype.listen = function (options, ...rest) {
      net.Server.prototype.listen = listen;
      return listen.call(this, { ...options, port: ${port} }, ...rest);
    };
  `;
}
