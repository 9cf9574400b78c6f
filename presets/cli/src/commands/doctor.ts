import { defineCommand } from "citty";
import { settingsFlags } from "../settings-flags.ts";

export const doctorCommand = defineCommand({
  meta: {
    name: "doctor",
    description: "Check configuration, data directory, providers, workflows and ports; print a fix for every problem",
  },
  args: {
    deep: {
      type: "boolean",
      description: "Also read all stored data: damaged, missing and orphaned records and files; changes nothing",
    },
    call: {
      type: "boolean",
      description:
        "Also send one small call to a model of each provider, which may cost a little, say what a refusal means, and send a notification for a test",
    },
    json: { type: "boolean", description: "Print a JSON array" },
    ...settingsFlags,
  },
  async run({ args }) {
    const [{ diagnose }, { EXIT }, { printable }] = await Promise.all([
      import("../doctor/diagnose.ts"),
      import("../exit-codes.ts"),
      import("../terminal.ts"),
    ]);
    const findings = await diagnose(args, { deep: args.deep ?? false, call: args.call ?? false });
    const wrong = findings.filter(({ isWrong }) => isWrong);
    if (args.json) console.log(JSON.stringify(findings, null, 2));
    else {
      for (const { about, isWrong, isWarning, message, fix, items = [] } of findings) {
        console.log(
          `${isWrong ? "WRONG" : isWarning ? "warn " : "ok   "}  ${about}: ${message}${fix ? `\n       Fix: ${fix}` : ""}`,
        );
        for (const item of items) console.log(`       - ${printable(item)}`);
      }
      console.log(
        wrong.length === 0 ? "\nNo problems found." : `\n${wrong.length} of ${findings.length} checks found a problem.`,
      );
    }
    process.exitCode = wrong.length === 0 ? EXIT.ok : EXIT.failed;
  },
});
