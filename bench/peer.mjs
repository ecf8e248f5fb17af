// The peer: @google/gemini-cli-core's own HookRunner, which LLxprt Code's hook system comes from.
//
//   node peer.mjs CORE PLAIN SHELL PYTHON NODE
//
// CORE is the folder of the installed package. Speaks the language of floor.c: "plain|shell|python|node COUNT WIDTH PAYLOAD"
// on stdin, nanoseconds of each batch on stdout.

import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [core, plain, shell, python, node] = process.argv.slice(2);
const { HookRunner } = await import(pathToFileURL(`${core}/dist/src/hooks/hookRunner.js`).href);

// Gemini CLI shows what its logger says in a window of its own; to print a line for each hook would only slow it down.
for (const name of ['log', 'debug', 'info', 'warn', 'error']) console[name] = () => {};

// All that the runner asks of a configuration, with the values of a trusted folder and default settings.
const runner = new HookRunner({
  isTrustedFolder: () => true,
  sanitizationConfig: {
    allowedEnvironmentVariables: [],
    blockedEnvironmentVariables: [],
    enableEnvironmentVariableRedaction: false,
  },
  storage: { getPlansDir: () => '/tmp/plans' },
});

const commands = { plain, shell, python, node };

async function batch(command, width, input) {
  const hooks = Array.from({ length: width }, (_, number) => ({
    type: 'command',
    command: width === 1 ? command : `${command} ${number}`,
  }));
  const started = process.hrtime.bigint();
  const results = await runner.executeHooksParallel(hooks, 'BeforeTool', input);
  const elapsed = process.hrtime.bigint() - started;
  for (const result of results) {
    if (!result.success || result.output?.decision !== 'allow') {
      process.stderr.write(`peer: the hook failed: ${result.error ?? result.stderr}\n`);
      process.exit(1);
    }
  }
  return elapsed;
}

for await (const line of createInterface({ input: process.stdin })) {
  const [kind, count, width, ...rest] = line.split(' ');
  const input = JSON.parse(readFileSync(rest.join(' '), 'utf8'));
  const times = [];
  for (let i = 0; i < Number(count); i++) times.push(await batch(commands[kind], Number(width), input));
  process.stdout.write(`${times.join(' ')}\n`);
}
