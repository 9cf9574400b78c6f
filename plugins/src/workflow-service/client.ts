// What programs that start workflows and decide at gates share with the service. It runs in browsers.
export { faultsByField, type FormField, formFields, readValues, type ReadValues } from "./form-fields.ts";
export { caseFileOfRun, caseOfRun, EXECUTED_IN_CASES } from "./editing/case-of-run.ts";
