import { Secret } from "@portico/core";
import { pluginConformance } from "@portico/test/conformance/plugin";
import { testing } from "@portico/presets/testing";
import { notebook } from "./notebook.ts";

pluginConformance("playground/notebook.ts", () => notebook({ token: new Secret("a-token-for-the-suite") }), {
  extends: testing({}),
  credentials: { reader: { authorization: "Bearer a-token-for-the-suite" } },
  params: { title: "tea" },
});
