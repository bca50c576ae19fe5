/**
 * The project's own lint rules: who may import whom, and what the synchronous cores must not touch.
 * If these were silent, a clock or a socket could slip into a core, and the simulator would prove another program.
 */
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** Folder → folders it may import (itself always). The longest matching folder counts. */
const table = {
  lib: [],
  'zaris/model': ['lib'],
  'zaris/control': ['lib', 'zaris/model'],
  'zaris/partition': ['lib', 'zaris/model', 'zaris/control'],
  'zaris/node': ['lib', 'zaris/model', 'zaris/control', 'zaris/partition'],
  'zaris/client': ['lib', 'zaris/model'],
  'zaris/server': ['lib', 'zaris'],
  'zaris/cli': ['lib', 'zaris'],
  workloads: ['lib'],
  chaos: ['lib'],
  ledger: ['lib', 'workloads', 'chaos'],
  docker: ['lib', 'chaos/ports.ts', 'chaos/faults.ts'],
  'harness/systems': ['lib', 'zaris/client', 'zaris/model', 'workloads/port.ts', 'chaos/ports.ts', 'chaos/triggers.ts'],
  sim: ['lib', 'zaris', 'workloads', 'chaos', 'ledger', 'harness/report', 'harness/systems'],
  harness: ['*'],
};

/** Packages and Node modules that only some folders may name. */
const reserved = {
  'better-sqlite3': ['ledger'],
  testcontainers: ['docker'],
  dockerode: ['docker'],
  yargs: ['harness', 'zaris/cli'],
  'node:net': ['zaris/server', 'zaris/client', 'docker', 'harness', 'zaris/cli'],
};

const cores = ['zaris/control', 'zaris/partition', 'zaris/node', 'zaris/model'];
/** The client core is synchronous too; its shell files are named here. */
const clientShell = /^zaris\/client\/(client|driver|settings|errors|.*\.test|client-test-world)\./;

const isTest = (file) => /\.test\.ts$/.test(file) || /(^|\/)testing\//.test(file) || /-test-world\.ts$/.test(file);

const within = (file, folder) => file === folder || file.startsWith(`${folder}/`);

function ownerOf(file) {
  return Object.keys(table)
    .filter((folder) => within(file, folder))
    .sort((a, b) => b.length - a.length)[0];
}

function mayImport(from, to) {
  const owner = ownerOf(from);
  const target = ownerOf(to);
  if (owner === undefined || target === undefined || owner === target) return true;
  const allowed = table[owner];
  return allowed.includes('*') || allowed.some((folder) => within(to, folder));
}

const pathOf = (context) => relative(root, context.filename ?? context.getFilename());

function forEachImport(context, check) {
  const visit = (node) => {
    const source = node.source?.value;
    if (typeof source === 'string') check(node, source);
  };
  return {
    ImportDeclaration: visit,
    ExportNamedDeclaration: visit,
    ExportAllDeclaration: visit,
    ImportExpression: visit,
  };
}

const importTable = {
  create(context) {
    const file = pathOf(context);
    if (isTest(file)) return {};
    return forEachImport(context, (node, source) => {
      if (source.startsWith('.')) {
        const target = join(dirname(file), source);
        if (!mayImport(file, target)) {
          context.report({
            node,
            message: `${ownerOf(file)}/ may not import ${ownerOf(target)}/ (DESIGN, layout table)`,
          });
        }
        return;
      }
      const name = Object.keys(reserved).find(
        (packageName) => source === packageName || source.startsWith(`${packageName}/`),
      );
      if (name !== undefined && !reserved[name].some((folder) => within(file, folder))) {
        context.report({ node, message: `${name} belongs in ${reserved[name].join(', ')} only` });
      }
    });
  },
};

const pureCore = {
  create(context) {
    const file = pathOf(context);
    const isCore =
      cores.some((folder) => within(file, folder)) || (within(file, 'zaris/client') && !clientShell.test(file));
    if (!isCore || isTest(file)) return {};
    const forbid = (node, what) => context.report({ node, message: `a synchronous core must not use ${what}` });
    const checkFunction = (node) => {
      if (node.async) forbid(node, 'async');
    };
    return {
      ...forEachImport(context, (node, source) => {
        if (source.startsWith('node:')) forbid(node, source);
      }),
      FunctionDeclaration: checkFunction,
      FunctionExpression: checkFunction,
      ArrowFunctionExpression: checkFunction,
      AwaitExpression: (node) => forbid(node, 'await'),
      MemberExpression(node) {
        const object = node.object?.name;
        const property = node.property?.name;
        if (object === 'Math' && property === 'random') forbid(node, 'Math.random');
        if (object === 'Date' || object === 'process' || object === 'performance') forbid(node, object);
      },
      NewExpression(node) {
        if (['Date', 'Promise'].includes(node.callee?.name)) forbid(node, node.callee.name);
      },
      CallExpression(node) {
        if (['setTimeout', 'setInterval', 'setImmediate', 'queueMicrotask', 'fetch'].includes(node.callee?.name)) {
          forbid(node, node.callee.name);
        }
      },
    };
  },
};

export default {
  meta: { name: 'zaris' },
  rules: { 'import-table': importTable, 'pure-core': pureCore },
};
