import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { installedProxies, type ProxyName, startReverseProxy } from "../../harness/reverse-proxies.ts";
import { readPage } from "../docs/pages.ts";
import { keepsTheRulesOfProxies } from "../docs/proxy-rules.ts";

const { blocks } = await readPage("docs/deploy/behind-a-proxy.md");
const blockOf = (wanted: string, words = "") =>
  blocks.find(({ language, text }) => language === wanted && text.includes(words))!.text;
const settings = parse(blockOf("yaml", "instance:"));
const installed = installedProxies();
const languages: Readonly<Record<ProxyName, string>> = { caddy: "caddyfile", haproxy: "haproxy", apache: "apache" };

for (const [name, language] of Object.entries(languages) as [ProxyName, string][]) {
  if (!installed.includes(name)) console.warn(`Tests of ${name} in front of a service are skipped: it is not installed`);
  describe.skipIf(!installed.includes(name))(`the ${name} of docs/deploy/behind-a-proxy.md`, () => {
    // Apache reads an answer when it has sent the whole request. The page says so.
    const isDuplex = name !== "apache";
    keepsTheRulesOfProxies({ settings, configuration: blockOf(language), isDuplex }, (placed) => startReverseProxy(name, placed));
  });
}

describe("the Traefik of docs/deploy/behind-a-proxy.md", () => {
  it("has a router and a service for each address of the settings", () => {
    const { routers, services } = parse(blockOf("yaml", "routers:")).http;
    for (const name of ["agent", "workflow"] as const) {
      expect(routers[name].rule).toContain(`Host(\`${new URL(settings[name].publicUrl).host}\`)`);
      const [{ url }] = services[routers[name].service].loadBalancer.servers;
      expect(url).toBe(`http://127.0.0.1:${settings[name].listen.port}`);
    }
    expect(routers.agent.rule).toContain("!PathPrefix(`/api/workflow`)");
  });
});
