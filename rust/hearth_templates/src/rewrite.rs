// SPDX-License-Identifier: Apache-2.0
// The syntax tree of a template, with every operator that looks at characters or makes values
// replaced by a filter of ours (operators.rs), which sees through marks and charges for its work.
// The filters have names no template can write. What chat templates have no use for is refused.
use crate::marks::is_marked;
use minijinja::machinery::ast::{self, Expr, Spanned, Stmt};
use minijinja::machinery::{tokenize, Span, Token};
use minijinja::syntax::SyntaxConfig;
use minijinja::{Error, ErrorKind, Value};

fn refuse<T>(what: &str) -> Result<T, Error> {
    Err(Error::new(ErrorKind::SyntaxError, format!("chat templates may not use {what}")))
}

// Both the parser and the compiler walk these shapes by recursion without a limit of their own.
// The longest block of any public template has under 200 tokens.
const MAX_BLOCK_TOKENS: usize = 1024;
const MAX_ELIFS: usize = 256;

/// Refuses shapes that would exhaust the stack of the parser.
pub fn check_shape(source: &str, syntax: &SyntaxConfig) -> Result<(), Error> {
    let (mut tokens_in_block, mut elifs) = (0, 0);
    for item in tokenize(source, false, syntax.clone()) {
        match item?.0 {
            Token::TemplateData(_)
            | Token::BlockStart
            | Token::BlockEnd
            | Token::VariableStart
            | Token::VariableEnd => tokens_in_block = 0,
            Token::Ident("elif") => elifs += 1,
            _ => {}
        }
        tokens_in_block += 1;
        if tokens_in_block > MAX_BLOCK_TOKENS || elifs > MAX_ELIFS {
            return refuse("expressions that long");
        }
    }
    Ok(())
}

type Made<T> = Result<T, Error>;

fn filter<'a>(name: &'static str, mut args: Vec<Expr<'a>>, span: Span) -> Expr<'a> {
    let first = args.remove(0);
    let args = args.into_iter().map(ast::CallArg::Pos).collect();
    Expr::Filter(Spanned::new(ast::Filter { name, expr: Some(first), args }, span))
}

fn constant<'a>(value: Value, span: Span) -> Expr<'a> {
    Expr::Const(Spanned::new(ast::Const { value }, span))
}

fn literal<'a>(value: &Value, span: Span) -> Made<Expr<'a>> {
    if value.as_str().is_some_and(|text| text.chars().any(is_marked)) {
        return refuse("characters that Unicode has not assigned");
    }
    Ok(constant(value.clone(), span))
}

fn option<'a>(expr: &Option<Expr<'a>>) -> Made<Option<Expr<'a>>> {
    expr.as_ref().map(expression).transpose()
}

fn expressions<'a>(list: &[Expr<'a>]) -> Made<Vec<Expr<'a>>> {
    list.iter().map(expression).collect()
}

fn compare_name(op: ast::CompareOpKind) -> &'static str {
    match op {
        ast::CompareOpKind::Eq => "==",
        ast::CompareOpKind::Ne => "!=",
        ast::CompareOpKind::Lt => "<",
        ast::CompareOpKind::Lte => "<=",
        ast::CompareOpKind::Gt => ">",
        ast::CompareOpKind::Gte => ">=",
        ast::CompareOpKind::In => "@in",
        ast::CompareOpKind::NotIn => "@not in",
    }
}

fn binary<'a>(node: &Spanned<ast::BinOp<'a>>) -> Made<Expr<'a>> {
    let (left, right) = (expression(&node.left)?, expression(&node.right)?);
    let name = match node.op {
        ast::BinOpKind::Eq => "==",
        ast::BinOpKind::Ne => "!=",
        ast::BinOpKind::Lt => "<",
        ast::BinOpKind::Lte => "<=",
        ast::BinOpKind::Gt => ">",
        ast::BinOpKind::Gte => ">=",
        ast::BinOpKind::In => "@in",
        ast::BinOpKind::Add => "+",
        ast::BinOpKind::Mul => "*",
        ast::BinOpKind::Rem => "%",
        ast::BinOpKind::Concat => "~",
        op @ (ast::BinOpKind::ScAnd
        | ast::BinOpKind::ScOr
        | ast::BinOpKind::Sub
        | ast::BinOpKind::Div
        | ast::BinOpKind::FloorDiv
        | ast::BinOpKind::Pow) => {
            return Ok(Expr::BinOp(Spanned::new(ast::BinOp { op, left, right }, node.span())));
        }
    };
    Ok(filter(name, vec![left, right], node.span()))
}

fn arguments<'a>(args: &[ast::CallArg<'a>]) -> Made<Vec<ast::CallArg<'a>>> {
    args.iter()
        .map(|arg| {
            Ok(match arg {
                ast::CallArg::Pos(e) => ast::CallArg::Pos(expression(e)?),
                ast::CallArg::Kwarg(name, e) => ast::CallArg::Kwarg(name, expression(e)?),
                ast::CallArg::PosSplat(e) => {
                    ast::CallArg::PosSplat(filter("@iter", vec![expression(e)?], e.span()))
                }
                ast::CallArg::KwargSplat(e) => {
                    ast::CallArg::KwargSplat(filter("@kwargs", vec![expression(e)?], e.span()))
                }
            })
        })
        .collect()
}

fn call<'a>(node: &Spanned<ast::Call<'a>>) -> Made<Spanned<ast::Call<'a>>> {
    let span = node.span();
    let callee = match &node.expr {
        Expr::Var(var) if matches!(var.id, "super" | "self" | "loop") => {
            return refuse("recursive loops and blocks");
        }
        Expr::Var(var) => Expr::Var(Spanned::new(ast::Var { id: var.id }, span)),
        Expr::GetAttr(attr) => {
            if matches!(&attr.expr, Expr::Var(var) if var.id == "self") {
                return refuse("blocks");
            }
            let expr = expression(&attr.expr)?;
            Expr::GetAttr(Spanned::new(ast::GetAttr { expr, name: attr.name }, span))
        }
        other => expression(other)?,
    };
    Ok(Spanned::new(ast::Call { expr: callee, args: arguments(&node.args)? }, span))
}

fn filter_node<'a>(node: &Spanned<ast::Filter<'a>>) -> Made<Expr<'a>> {
    let expr = option(&node.expr)?;
    let args = arguments(&node.args)?;
    Ok(Expr::Filter(Spanned::new(ast::Filter { name: node.name, expr, args }, node.span())))
}

fn slice<'a>(node: &Spanned<ast::Slice<'a>>) -> Made<Expr<'a>> {
    let span = node.span();
    let mut args = vec![expression(&node.expr)?];
    for bound in [&node.start, &node.stop, &node.step] {
        args.push(option(bound)?.unwrap_or_else(|| constant(Value::from(()), span)));
    }
    Ok(filter("@slice", args, span))
}

fn compare<'a>(node: &Spanned<ast::Compare<'a>>) -> Made<Expr<'a>> {
    let mut args = vec![expression(&node.expr)?];
    for op in &node.ops {
        args.push(constant(Value::from(compare_name(op.op)), node.span()));
        args.push(expression(&op.expr)?);
    }
    Ok(filter("@compare", args, node.span()))
}

fn map<'a>(node: &Spanned<ast::Map<'a>>) -> Made<Expr<'a>> {
    let mut args = vec![constant(Value::from(()), node.span())];
    for (key, value) in node.keys.iter().zip(&node.values) {
        args.push(expression(key)?);
        args.push(expression(value)?);
    }
    Ok(filter("@dict", args, node.span()))
}

fn expression<'a>(expr: &Expr<'a>) -> Made<Expr<'a>> {
    let span = expr.span();
    Ok(match expr {
        Expr::Var(node) => Expr::Var(Spanned::new(ast::Var { id: node.id }, span)),
        Expr::Const(node) => literal(&node.value, span)?,
        Expr::Slice(node) => slice(node)?,
        Expr::UnaryOp(node) => {
            let op = match node.op {
                ast::UnaryOpKind::Not => ast::UnaryOpKind::Not,
                ast::UnaryOpKind::Neg => ast::UnaryOpKind::Neg,
            };
            Expr::UnaryOp(Spanned::new(ast::UnaryOp { op, expr: expression(&node.expr)? }, span))
        }
        Expr::BinOp(node) => binary(node)?,
        Expr::Compare(node) => compare(node)?,
        Expr::IfExpr(node) => {
            let node = ast::IfExpr {
                test_expr: expression(&node.test_expr)?,
                true_expr: expression(&node.true_expr)?,
                false_expr: option(&node.false_expr)?,
            };
            Expr::IfExpr(Spanned::new(node, span))
        }
        Expr::Filter(node) => filter_node(node)?,
        Expr::Test(node) => {
            let (expr, args) = (expression(&node.expr)?, arguments(&node.args)?);
            Expr::Test(Spanned::new(ast::Test { name: node.name, expr, args }, span))
        }
        Expr::GetAttr(node) => {
            let name = constant(Value::from(node.name), span);
            filter("@attr", vec![expression(&node.expr)?, name], span)
        }
        Expr::GetItem(node) => {
            let args = vec![expression(&node.expr)?, expression(&node.subscript_expr)?];
            filter("@item", args, span)
        }
        Expr::Call(node) => Expr::Call(call(node)?),
        Expr::List(node) => {
            Expr::List(Spanned::new(ast::List { items: expressions(&node.items)? }, span))
        }
        Expr::Tuple(node) => {
            Expr::Tuple(Spanned::new(ast::Tuple { items: expressions(&node.items)? }, span))
        }
        Expr::Map(node) => map(node)?,
    })
}

/// What stands left of an assignment: names stay names.
fn target<'a>(expr: &Expr<'a>) -> Made<Expr<'a>> {
    let span = expr.span();
    Ok(match expr {
        Expr::Var(node) => Expr::Var(Spanned::new(ast::Var { id: node.id }, span)),
        Expr::List(node) => {
            let items = node.items.iter().map(target).collect::<Made<_>>()?;
            Expr::List(Spanned::new(ast::List { items }, span))
        }
        Expr::GetAttr(node) => {
            let expr = target(&node.expr)?;
            Expr::GetAttr(Spanned::new(ast::GetAttr { expr, name: node.name }, span))
        }
        _ => return refuse("assignments of that form"),
    })
}

fn body<'a>(list: &[Stmt<'a>]) -> Made<Vec<Stmt<'a>>> {
    list.iter().map(statement).collect()
}

fn macro_node<'a>(node: &Spanned<ast::Macro<'a>>) -> Made<Spanned<ast::Macro<'a>>> {
    let made = ast::Macro {
        name: node.name,
        args: node.args.iter().map(target).collect::<Made<_>>()?,
        defaults: expressions(&node.defaults)?,
        body: body(&node.body)?,
    };
    Ok(Spanned::new(made, node.span()))
}

fn kept<'a>(expr: &Expr<'a>) -> Made<Expr<'a>> {
    Ok(filter("@keep", vec![expression(expr)?], expr.span()))
}

fn for_loop<'a>(node: &Spanned<ast::ForLoop<'a>>) -> Made<Stmt<'a>> {
    if node.recursive {
        return refuse("recursive loops");
    }
    let made = ast::ForLoop {
        target: target(&node.target)?,
        iter: filter("@iter", vec![expression(&node.iter)?], node.iter.span()),
        filter_expr: option(&node.filter_expr)?,
        recursive: false,
        body: body(&node.body)?,
        else_body: body(&node.else_body)?,
    };
    Ok(Stmt::ForLoop(Spanned::new(made, node.span())))
}

pub fn statement<'a>(stmt: &Stmt<'a>) -> Made<Stmt<'a>> {
    Ok(match stmt {
        Stmt::Template(node) => {
            let made = ast::Template { children: body(&node.children)? };
            Stmt::Template(Spanned::new(made, node.span()))
        }
        Stmt::EmitExpr(node) => Stmt::EmitExpr(Spanned::new(
            ast::EmitExpr { expr: expression(&node.expr)? },
            node.span(),
        )),
        // As an expression it goes through our formatter, which charges for it.
        Stmt::EmitRaw(node) => {
            let expr = literal(&Value::from(node.raw), node.span())?;
            Stmt::EmitExpr(Spanned::new(ast::EmitExpr { expr }, node.span()))
        }
        Stmt::ForLoop(node) => for_loop(node)?,
        Stmt::IfCond(node) => {
            let made = ast::IfCond {
                expr: expression(&node.expr)?,
                true_body: body(&node.true_body)?,
                false_body: body(&node.false_body)?,
            };
            Stmt::IfCond(Spanned::new(made, node.span()))
        }
        Stmt::WithBlock(node) => {
            let assign = |(to, from): &(Expr<'a>, Expr<'a>)| Ok((target(to)?, kept(from)?));
            let assignments = node.assignments.iter().map(assign).collect::<Made<_>>()?;
            let made = ast::WithBlock { assignments, body: body(&node.body)? };
            Stmt::WithBlock(Spanned::new(made, node.span()))
        }
        Stmt::Set(node) => {
            let mut expr = kept(&node.expr)?;
            if matches!(node.target, Expr::GetAttr(_)) {
                expr = filter("@inside", vec![expr], node.span());
            }
            let made = ast::Set { target: target(&node.target)?, expr };
            Stmt::Set(Spanned::new(made, node.span()))
        }
        Stmt::Macro(node) => Stmt::Macro(macro_node(node)?),
        Stmt::Continue(node) => Stmt::Continue(Spanned::new(ast::Continue, node.span())),
        Stmt::Break(node) => Stmt::Break(Spanned::new(ast::Break, node.span())),
        Stmt::Do(node) => Stmt::Do(Spanned::new(ast::Do { call: call(&node.call)? }, node.span())),
        other => return block(other),
    })
}

/// Statements around a body that is text to something else.
fn block<'a>(stmt: &Stmt<'a>) -> Made<Stmt<'a>> {
    Ok(match stmt {
        Stmt::SetBlock(node) => {
            let made = ast::SetBlock {
                target: target(&node.target)?,
                filter: option(&node.filter)?,
                body: body(&node.body)?,
            };
            Stmt::SetBlock(Spanned::new(made, node.span()))
        }
        Stmt::FilterBlock(node) => {
            let made =
                ast::FilterBlock { filter: expression(&node.filter)?, body: body(&node.body)? };
            Stmt::FilterBlock(Spanned::new(made, node.span()))
        }
        Stmt::CallBlock(node) => {
            let made = ast::CallBlock {
                call: call(&node.call)?,
                macro_decl: macro_node(&node.macro_decl)?,
            };
            Stmt::CallBlock(Spanned::new(made, node.span()))
        }
        _ => return refuse("blocks, includes, imports, extends or autoescape"),
    })
}
