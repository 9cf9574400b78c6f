import { definePlugin, type Plugin, ports } from "@portico/core";
import * as v from "valibot";
import { ifInstalled } from "./if-installed.ts";

const found = await ifInstalled("@portico/console", async () => {
  const [page, links] = await Promise.all([import("@portico/console"), import("@portico/console/sign-in")]);
  return { ...page, ...links };
});

type Found = NonNullable<typeof found>;

/** Whether the package is installed. The web console is on by default only then. */
export const isConsoleInstalled: boolean = found !== undefined;

/** The page of the web console. Throws TypeError if the package is not installed. */
export const webConsole: Found["webConsole"] = found?.webConsole ?? refuse;

/** The links that sign in to the web console. Throws TypeError if the package is not installed. */
export const signIn: Found["signIn"] = found?.signIn ?? refuse;

/** Wrong sign-in codes per minute. Undefined if the package is not installed. */
export const WRONG_CODES: number | undefined = found?.WRONG_CODES;

/** For a service that would have the console if it was installed: writes one line into the log. */
export function noteMissingConsole(): readonly Plugin[] {
  return isConsoleInstalled ? [] : [missingConsole({})];
}

const missingConsole = definePlugin({
  name: "missing-console",
  config: v.strictObject({}),
  needs: { telemetry: ports.telemetry },
  contract: {},
  setup({ telemetry: { log } }) {
    log.info("The web console is off: @portico/console is not installed");
    return {};
  },
});

function refuse(): never {
  throw new TypeError("agent.console: install @portico/console, or leave this setting out");
}
