import { parse } from "yaml";
import { describe } from "vitest";
import { hasNginx, startNginx } from "../../harness/nginx.ts";
import { readPage } from "./pages.ts";
import { keepsTheRulesOfProxies } from "./proxy-rules.ts";

const { blocks } = await readPage("docs/guides/behind-nginx.md");
const blockOf = (wanted: string) => blocks.find(({ language }) => language === wanted)!.text;

describe.skipIf(!hasNginx())("the nginx of docs/guides/behind-nginx.md (skipped where there is no nginx with openssl)", () => {
  keepsTheRulesOfProxies({ settings: parse(blockOf("yaml")), configuration: blockOf("nginx") }, startNginx);
});
